import io.aeron.Aeron;
import io.aeron.archive.client.AeronArchive;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Lists all recordings of an archive again and again, and counts descriptors a second; then asks for
 * each of them by its id, once and in no order, and counts calls a second.
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
            final double listed = listFor(archive, count, Double.parseDouble(args[5]));
            warmUp(archive);
            System.out.printf(Locale.ROOT, "%.1f %.1f%n", listed, askForEach(archive, count));
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

    /** Asks for the first recording alone, so that only it is known when the others are asked for. */
    private static void warmUp(final AeronArchive archive)
    {
        final long endNs = System.nanoTime() + 1_000_000_000L;
        while (System.nanoTime() < endNs)
        {
            ask(archive, 0);
        }
    }

    private static double askForEach(final AeronArchive archive, final int count)
    {
        final List<Integer> ids = new ArrayList<>();
        for (int id = 0; id < count; id++)
        {
            ids.add(id);
        }
        Collections.shuffle(ids, new Random(1));
        final long startNs = System.nanoTime();
        for (final int id : ids)
        {
            ask(archive, id);
        }
        return count / ((System.nanoTime() - startNs) / 1e9);
    }

    private static void ask(final AeronArchive archive, final long id)
    {
        if (1 != archive.listRecording(id, (cs, c, r, st, sp, s, p, t, f, b, m, se, str, sc, oc, si) -> {}))
        {
            throw new IllegalStateException("no recording " + id);
        }
    }
}
