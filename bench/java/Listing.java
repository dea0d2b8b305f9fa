import io.aeron.Aeron;
import io.aeron.archive.client.AeronArchive;
import org.agrona.concurrent.YieldingIdleStrategy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Lists all recordings of an archive repeatedly, and counts descriptors per second; then requests
 * each of them by its id, once and in random order, and counts calls per second. Prints the rates of
 * the listings, of the calls, and of listings for a channel and a stream.
 *
 * Arguments: aeron directory, control response channel, recordings in the catalog, seconds to warm
 * up, seconds to measure, control request channel and stream id.
 */
public final class Listing
{
    private static final String CHANNEL_FRAGMENT = "alias=market-data";
    private static final int STREAM_ID = 1003;

    private static long seen;

    public static void main(final String[] args) throws Exception
    {
        final int count = Integer.parseInt(args[2]);
        final double warmUp = Double.parseDouble(args[3]);
        final double measure = Double.parseDouble(args[4]);
        final Aeron.Context client = new Aeron.Context()
            .aeronDirectoryName(args[0])
            .idleStrategy(YieldingIdleStrategy.INSTANCE);
        try (Aeron aeron = Aeron.connect(client);
            AeronArchive archive = AeronArchive.connect(new AeronArchive.Context()
                .aeron(aeron)
                .ownsAeronClient(false)
                .idleStrategy(YieldingIdleStrategy.INSTANCE)
                .controlRequestChannel(args[5])
                .controlRequestStreamId(Integer.parseInt(args[6]))
                .controlResponseChannel(args[1])))
        {
            listFor(archive, count, warmUp);
            final double all = listFor(archive, count, measure);
            warmUp(archive);
            System.out.printf(
                Locale.ROOT,
                "%.1f %.1f %.1f%n",
                all,
                askForEach(archive, count),
                listForUri(archive, count, measure));
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

    /** Lists the recordings of one of the streams: one in seven. */
    private static double listForUri(final AeronArchive archive, final int count, final double seconds)
    {
        final long startNs = System.nanoTime();
        final long endNs = startNs + (long)(seconds * 1e9);
        long listed = 0;
        long nowNs;
        do
        {
            listed += archive.listRecordingsForUri(
                0, count, CHANNEL_FRAGMENT, STREAM_ID,
                (cs, c, r, st, sp, s, p, t, f, b, m, se, str, sc, oc, si) -> {});
            nowNs = System.nanoTime();
        }
        while (nowNs < endNs);
        if (0 == listed)
        {
            throw new IllegalStateException("no recording of stream " + STREAM_ID);
        }
        return listed / ((nowNs - startNs) / 1e9);
    }

    /** Lists the first recording alone, so that only its offset is cached at the next requests. */
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
