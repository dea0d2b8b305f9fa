import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.archive.status.RecordingPos;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

/**
 * Publishes at the rate of the recorder, and measures the time until the last byte is recorded.
 *
 * Arguments: aeron directory, channel, stream id, message length, message count. Prints the
 * nanoseconds from the first offer until the recording position counter is at the end.
 */
public final class Flood
{
    public static void main(final String[] args) throws Exception
    {
        final int length = Integer.parseInt(args[3]);
        final long count = Long.parseLong(args[4]);
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

            final UnsafeBuffer message = new UnsafeBuffer(new byte[length]);
            // Warm up before the measurement.
            offer(publication, message, Math.min(count, 20_000));
            await(counters, counterId, publication.position());

            final long startNs = System.nanoTime();
            offer(publication, message, count);
            await(counters, counterId, publication.position());
            System.out.println(System.nanoTime() - startNs);
        }
    }

    private static void offer(
        final ExclusivePublication publication, final UnsafeBuffer message, final long count)
    {
        for (long i = 0; i < count; i++)
        {
            message.putLong(0, i);
            while (true)
            {
                final long result = publication.offer(message);
                if (result > 0)
                {
                    break;
                }
                if (result != ExclusivePublication.BACK_PRESSURED &&
                    result != ExclusivePublication.ADMIN_ACTION)
                {
                    throw new IllegalStateException("offer answered " + result);
                }
                Thread.yield();
            }
        }
    }

    private static void await(
        final CountersReader counters, final int counterId, final long position)
    {
        while (counters.getCounterValue(counterId) < position)
        {
            Thread.yield();
        }
    }
}
