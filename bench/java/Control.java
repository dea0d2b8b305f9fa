import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.archive.status.RecordingPos;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.AgentInvoker;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.YieldingIdleStrategy;
import org.agrona.concurrent.status.CountersReader;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Measures control requests of an archive.
 *
 * Arguments: warm-ups, measurements (comma separated), term length of streams, aeron directory, control channel and
 * control stream id. Each measurement is made once more than it is warmed up, and prints one line of the last time:
 * its name, and a rate or, for replays, the nanoseconds of each. The client yields while it waits, and its Aeron
 * conductor runs in this thread.
 */
public final class Control
{
    private static final int STREAM_ID = 7001;
    private static final int REPLAY_STREAM_ID = 7002;
    private static final int MESSAGE_LENGTH = 256;
    private static final int RECORDINGS = 32;
    private static final long ROUND_NS = 1_000_000_000L;

    private final String ipc;
    private final Aeron aeron;
    private final AgentInvoker invoker;
    private final AeronArchive archive;
    private final UnsafeBuffer message = new UnsafeBuffer(new byte[MESSAGE_LENGTH]);
    private final List<Long> recordings = new ArrayList<>();

    private Control(final Aeron aeron, final String termLength, final String channel, final int streamId)
    {
        ipc = "aeron:ipc?term-length=" + termLength;
        this.aeron = aeron;
        invoker = aeron.conductorAgentInvoker();
        final String response = channel.startsWith("aeron:ipc") ? "aeron:ipc" : "aeron:udp?endpoint=localhost:0";
        archive = AeronArchive.connect(new AeronArchive.Context()
            .aeron(aeron)
            .ownsAeronClient(false)
            .controlRequestChannel(channel)
            .controlRequestStreamId(streamId)
            .controlResponseChannel(response)
            .idleStrategy(YieldingIdleStrategy.INSTANCE));
        record();
    }

    public static void main(final String[] args)
    {
        final int warmUps = Integer.parseInt(args[0]);
        final String[] measurements = args[1].split(",");
        try (Aeron aeron = connect(args[3]))
        {
            final Control control = new Control(aeron, args[2], args[4], Integer.parseInt(args[5]));
            for (final String measurement : measurements)
            {
                for (int i = 0; i < warmUps; i++)
                {
                    control.measure(measurement);
                }
                System.out.println(measurement + " " + control.measure(measurement));
            }
            control.archive.close();
        }
    }

    private static Aeron connect(final String aeronDirectory)
    {
        return Aeron.connect(new Aeron.Context()
            .aeronDirectoryName(aeronDirectory)
            .useConductorAgentInvoker(true)
            .idleStrategy(YieldingIdleStrategy.INSTANCE)
            .awaitingIdleStrategy(YieldingIdleStrategy.INSTANCE));
    }

    private String measure(final String measurement)
    {
        return switch (measurement)
        {
            case "find" -> find();
            case "cycle" -> cycle();
            case "replay" -> replay();
            case "start" -> start();
            default -> throw new IllegalArgumentException(measurement);
        };
    }

    /** Creates recordings to be listed and replayed. */
    private void record()
    {
        for (int i = 0; i < RECORDINGS; i++)
        {
            recordings.add(recordOne(16));
        }
    }

    /** The lifecycle of a recording: publication, start, messages recorded, stop, close. */
    private long recordOne(final int messages)
    {
        final CountersReader counters = aeron.countersReader();
        try (ExclusivePublication publication = aeron.addExclusivePublication(ipc, STREAM_ID))
        {
            final long subscriptionId = archive.startRecording(ipc, STREAM_ID, SourceLocation.LOCAL, false);
            int counterId;
            while (CountersReader.NULL_COUNTER_ID ==
                (counterId = RecordingPos.findCounterIdBySession(counters, publication.sessionId())))
            {
                idle();
            }
            final long recordingId = RecordingPos.getRecordingId(counters, counterId);
            for (int i = 0; i < messages; i++)
            {
                while (publication.offer(message) < 0)
                {
                    idle();
                }
            }
            while (counters.getCounterValue(counterId) < publication.position())
            {
                idle();
            }
            archive.stopRecording(subscriptionId);
            return recordingId;
        }
    }

    private void idle()
    {
        invoker.invoke();
        Thread.yield();
    }

    private void await(
        final Subscription subscription, final FragmentHandler handler, final int[] received, final int count)
    {
        while (received[0] < count)
        {
            if (subscription.poll(handler, count) <= 0)
            {
                idle();
            }
        }
    }

    /** Recordings listed by id, per second. */
    private String find()
    {
        final Random random = new Random(1);
        final long startNs = System.nanoTime();
        long count = 0;
        long nowNs = startNs;
        while (nowNs - startNs < ROUND_NS)
        {
            final long id = recordings.get(random.nextInt(recordings.size()));
            if (1 != archive.listRecording(id, (cs, c, r, st, sp, s, p, t, f, b, m, se, str, sc, oc, si) -> {}))
            {
                throw new IllegalStateException("no recording " + id);
            }
            count++;
            nowNs = System.nanoTime();
        }
        return Double.toString(count * 1e9 / (nowNs - startNs));
    }

    /** Lifecycles of recordings with one message each, per second. */
    private String cycle()
    {
        final long startNs = System.nanoTime();
        long count = 0;
        long nowNs = startNs;
        while (nowNs - startNs < ROUND_NS)
        {
            recordOne(1);
            count++;
            nowNs = System.nanoTime();
        }
        return Double.toString(count * 1e9 / (nowNs - startNs));
    }

    /** Nanoseconds from each replay request to its first fragment. */
    private String replay()
    {
        final StringBuilder result = new StringBuilder();
        final int[] received = new int[1];
        final FragmentHandler handler = (buffer, offset, length, header) -> received[0]++;
        final long beginNs = System.nanoTime();
        int next = 0;
        while (System.nanoTime() - beginNs < ROUND_NS)
        {
            received[0] = 0;
            final long id = recordings.get(next++ % recordings.size());
            final long startNs = System.nanoTime();
            try (Subscription subscription =
                archive.replay(id, 0, Long.MAX_VALUE, "aeron:ipc", REPLAY_STREAM_ID))
            {
                await(subscription, handler, received, 1);
                result.append(result.isEmpty() ? "" : ",").append(System.nanoTime() - startNs);
                await(subscription, handler, received, 16);
            }
        }
        return result.toString();
    }

    /** The same with one subscription for all replays, which is there before the request. */
    private String start()
    {
        final StringBuilder result = new StringBuilder();
        final int[] received = new int[1];
        final FragmentHandler handler = (buffer, offset, length, header) -> received[0]++;
        try (Subscription subscription = aeron.addSubscription("aeron:ipc", REPLAY_STREAM_ID))
        {
            final long beginNs = System.nanoTime();
            int next = 0;
            while (System.nanoTime() - beginNs < ROUND_NS)
            {
                received[0] = 0;
                final long id = recordings.get(next++ % recordings.size());
                final long startNs = System.nanoTime();
                archive.startReplay(id, 0, Long.MAX_VALUE, "aeron:ipc", REPLAY_STREAM_ID);
                await(subscription, handler, received, 1);
                result.append(result.isEmpty() ? "" : ",").append(System.nanoTime() - startNs);
                await(subscription, handler, received, 16);
            }
        }
        return result.toString();
    }
}
