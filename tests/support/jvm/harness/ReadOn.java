package harness;

import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.PersistentSubscription;
import io.aeron.archive.client.ReplayMerge;
import io.aeron.logbuffer.FragmentHandler;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.util.HexFormat;

/**
 * Reads a recording from its start and continues with the live stream, by Aeron's ReplayMerge ("merge") or
 * PersistentSubscription ("persistent"). Prints JOINED with the number of messages so far when live, and at the end
 * the digest of these and of some later messages.
 */
public final class ReadOn
{
    private static MessageDigest digest;
    private static long count;
    private static long end = Long.MAX_VALUE;
    private static long more;

    private ReadOn()
    {
    }

    /**
     * @param args mode, Aeron directory, control channel, recording, stream, session, live channel, messages after joining.
     */
    public static void main(final String[] args) throws Exception
    {
        digest = MessageDigest.getInstance("SHA-256");
        more = Long.parseLong(args[7]);
        final long recordingId = Long.parseLong(args[3]);
        final int streamId = Integer.parseInt(args[4]);
        final AeronArchive.Context context = new AeronArchive.Context()
            .controlRequestChannel(args[2])
            .controlResponseChannel("aeron:udp?endpoint=localhost:0");
        final FragmentHandler handler = (buffer, offset, length, header) ->
        {
            if (count++ < end)
            {
                final byte[] payload = new byte[length];
                buffer.getBytes(offset, payload);
                digest.update(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(0, length).array());
                digest.update(payload);
            }
        };
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1])))
        {
            context.aeron(aeron).ownsAeronClient(false);
            if ("merge".equals(args[0]))
            {
                merge(aeron, context, recordingId, streamId, args[5], args[6], handler);
            }
            else
            {
                persist(aeron, context, recordingId, streamId, args[6], handler);
            }
        }
        System.out.println("DIGEST " + HexFormat.of().formatHex(digest.digest()));
    }

    private static void merge(
        final Aeron aeron,
        final AeronArchive.Context context,
        final long recordingId,
        final int streamId,
        final String sessionId,
        final String liveChannel,
        final FragmentHandler handler)
    {
        final FragmentAssembler assembler = new FragmentAssembler(handler);
        try (AeronArchive archive = AeronArchive.connect(context);
            Subscription subscription = aeron.addSubscription(
                "aeron:udp?control-mode=manual|session-id=" + sessionId, streamId);
            ReplayMerge merge = new ReplayMerge(
                subscription,
                archive,
                "aeron:udp?session-id=" + sessionId,
                "aeron:udp?endpoint=localhost:0",
                liveChannel,
                recordingId,
                0))
        {
            boolean hasJoined = false;
            while (count < end)
            {
                merge.poll(assembler, 10);
                hasJoined = printWhenJoined(hasJoined, merge.isMerged());
            }
        }
    }

    private static void persist(
        final Aeron aeron,
        final AeronArchive.Context context,
        final long recordingId,
        final int streamId,
        final String liveChannel,
        final FragmentHandler handler)
    {
        try (PersistentSubscription subscription = PersistentSubscription.create(new PersistentSubscription.Context()
            .aeron(aeron)
            .aeronArchiveContext(context)
            .recordingId(recordingId)
            .startPosition(PersistentSubscription.FROM_START)
            .liveChannel(liveChannel)
            .liveStreamId(streamId)
            .replayChannel("aeron:udp?endpoint=localhost:0")
            .replayStreamId(streamId + 1)))
        {
            boolean hasJoined = false;
            while (count < end)
            {
                subscription.poll(handler, 10);
                hasJoined = printWhenJoined(hasJoined, subscription.isLive());
                if (subscription.hasFailed())
                {
                    throw new IllegalStateException(subscription.failureReason());
                }
            }
        }
    }

    private static boolean printWhenJoined(final boolean hasJoined, final boolean isLive)
    {
        if (isLive && !hasJoined)
        {
            end = count + more;
            System.out.println("JOINED " + count);
        }
        return hasJoined || isLive;
    }
}
