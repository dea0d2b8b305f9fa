import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.archive.status.RecordingPos;
import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

/**
 * Publishes at a fixed rate, and measures the time from each offer until the recording position
 * counter has passed its message.
 *
 * Arguments: aeron directory, channel, stream id, message length, messages per second, seconds to
 * warm up, seconds to measure. Prints a line when the measurement begins, and at its end the median
 * and the 99th percentile, nanoseconds.
 */
public final class Pace
{
    public static void main(final String[] args) throws Exception
    {
        final UnsafeBuffer message = new UnsafeBuffer(new byte[Integer.parseInt(args[3])]);
        final int rate = Integer.parseInt(args[4]);
        final int warmUp = (int)(rate * Double.parseDouble(args[5]));
        final int count = (int)(rate * Double.parseDouble(args[6]));
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[0]));
            ExclusivePublication publication =
                aeron.addExclusivePublication(args[1], Integer.parseInt(args[2])))
        {
            final CountersReader counters = aeron.countersReader();
            int counterId;
            do
            {
                Thread.sleep(1);
                counterId = RecordingPos.findCounterIdBySession(counters, publication.sessionId());
            }
            while (CountersReader.NULL_COUNTER_ID == counterId || !publication.isConnected());

            run(publication, message, counters, counterId, rate, warmUp);
            System.out.println("measuring");
            final long[] latencies = run(publication, message, counters, counterId, rate, count);
            Arrays.sort(latencies);
            System.out.println(latencies[count / 2] + " " + latencies[(int)(count * 0.99)]);
        }
    }

    private static long[] run(
        final ExclusivePublication publication,
        final UnsafeBuffer message,
        final CountersReader counters,
        final int counterId,
        final int rate,
        final int count)
    {
        final long[] offeredNs = new long[count];
        final long[] positions = new long[count];
        final long startNs = System.nanoTime();
        int sent = 0;
        int recorded = 0;
        while (recorded < count)
        {
            long nowNs = System.nanoTime();
            if (sent < count && nowNs - startNs >= sent * 1_000_000_000L / rate)
            {
                final long result = publication.offer(message);
                if (result > 0)
                {
                    offeredNs[sent] = nowNs;
                    positions[sent++] = result;
                }
            }
            final long position = counters.getCounterValue(counterId);
            if (recorded < sent && position >= positions[recorded])
            {
                nowNs = System.nanoTime();
                while (recorded < sent && position >= positions[recorded])
                {
                    offeredNs[recorded] = nowNs - offeredNs[recorded];
                    recorded++;
                }
            }
            Thread.onSpinWait();
        }
        return offeredNs;
    }
}
