import io.aeron.Aeron;
import io.aeron.archive.client.AeronArchive;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.util.Locale;

/**
 * Lists all recordings of an archive again and again, and counts descriptors a second.
 *
 * Arguments: aeron directory, control request channel, control response channel, recordings in the
 * catalog, seconds to warm up, seconds to measure.
 */
public final class Listing
{
    private static long seen;

    public static void main(final String[] args) throws Exception
    {
        final int count = Integer.parseInt(args[3]);
        final Aeron.Context client = new Aeron.Context()
            .aeronDirectoryName(args[0])
            .idleStrategy(YieldingIdleStrategy.INSTANCE);
        try (Aeron aeron = Aeron.connect(client);
            AeronArchive archive = AeronArchive.connect(new AeronArchive.Context()
                .aeron(aeron)
                .idleStrategy(YieldingIdleStrategy.INSTANCE)
                .controlRequestChannel(args[1])
                .controlResponseChannel(args[2])))
        {
            listFor(archive, count, Double.parseDouble(args[4]));
            System.out.printf(Locale.ROOT, "%.1f%n", listFor(archive, count, Double.parseDouble(args[5])));
        }
    }

    private static double listFor(final AeronArchive archive, final int count, final double seconds)
    {
        final long startNs = System.nanoTime();
        final long endNs = startNs + (long)(seconds * 1e9);
        seen = 0;
        long nowNs;
        do
        {
            final int listed = archive.listRecordings(
                0, count,
                (controlSessionId, correlationId, recordingId, startTimestamp, stopTimestamp,
                startPosition, stopPosition, initialTermId, segmentFileLength, termBufferLength,
                mtuLength, sessionId, streamId, strippedChannel, originalChannel, sourceIdentity) ->
                    seen += 1);
            if (listed != count)
            {
                throw new IllegalStateException("listed " + listed + " of " + count);
            }
            nowNs = System.nanoTime();
        }
        while (nowNs < endNs);
        return seen / ((nowNs - startNs) / 1e9);
    }
}
