import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.archive.status.RecordingPos;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

/**
 * Publishes at the rate of the recorder, and measures the time until the last byte is recorded.
 *
 * Arguments: aeron directory, channel, first stream id, message length, message count of each
 * stream, number of streams (1 if omitted). Messages go to the streams in bursts, one after the
 * other. Prints the nanoseconds from the first offer until all recording position counters are at
 * the end.
 */
public final class Flood
{
    private static final int BURST = 64;

    public static void main(final String[] args) throws Exception
    {
        final int length = Integer.parseInt(args[3]);
        final long count = Long.parseLong(args[4]);
        final int streams = args.length > 5 ? Integer.parseInt(args[5]) : 1;
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[0])))
        {
            final CountersReader counters = aeron.countersReader();
            final ExclusivePublication[] publications = new ExclusivePublication[streams];
            final int[] counterIds = new int[streams];
            for (int i = 0; i < streams; i++)
            {
                publications[i] = aeron.addExclusivePublication(args[1], Integer.parseInt(args[2]) + i);
            }
            for (int i = 0; i < streams; i++)
            {
                do
                {
                    Thread.sleep(1);
                    counterIds[i] = RecordingPos.findCounterIdBySession(
                        counters, publications[i].sessionId());
                }
                while (CountersReader.NULL_COUNTER_ID == counterIds[i] || !publications[i].isConnected());
            }

            final UnsafeBuffer message = new UnsafeBuffer(new byte[length]);
            // Warm up before the measurement.
            flood(publications, message, Math.min(count, Math.max(20_000 / streams, 1)));
            await(counters, counterIds, publications);

            final long startNs = System.nanoTime();
            flood(publications, message, count);
            await(counters, counterIds, publications);
            System.out.println(System.nanoTime() - startNs);
        }
    }

    private static void flood(
        final ExclusivePublication[] publications, final UnsafeBuffer message, final long count)
    {
        final long[] sent = new long[publications.length];
        for (int open = publications.length; open > 0; )
        {
            boolean worked = false;
            for (int i = 0; i < publications.length; i++)
            {
                // A stream under back pressure does not hold up the others.
                final long end = Math.min(count, sent[i] + BURST);
                final boolean isOpen = sent[i] < count;
                while (sent[i] < end)
                {
                    message.putLong(0, sent[i]);
                    final long result = publications[i].offer(message);
                    if (result > 0)
                    {
                        sent[i]++;
                        worked = true;
                    }
                    else if (result == ExclusivePublication.BACK_PRESSURED ||
                        result == ExclusivePublication.ADMIN_ACTION)
                    {
                        break;
                    }
                    else
                    {
                        throw new IllegalStateException("offer answered " + result);
                    }
                }
                open -= isOpen && sent[i] == count ? 1 : 0;
            }
            if (!worked)
            {
                Thread.yield();
            }
        }
    }

    private static void await(
        final CountersReader counters,
        final int[] counterIds,
        final ExclusivePublication[] publications)
    {
        for (int i = 0; i < publications.length; i++)
        {
            while (counters.getCounterValue(counterIds[i]) < publications[i].position())
            {
                Thread.yield();
            }
        }
    }
}
