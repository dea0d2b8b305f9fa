package harness;

import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A member of an Aeron Cluster, consensus module and service, on an archive and a media driver in another process;
 * configured by system properties. Prints READY, and its state for each line of input: role, number of messages, a
 * hash of them, and the number of messages in the snapshot from which it started. Ends with its input.
 */
public final class ClusterNode implements ClusteredService
{
    private static final int STATE_LENGTH = 2 * Long.BYTES;

    private final UnsafeBuffer buffer = new UnsafeBuffer(new byte[STATE_LENGTH]);
    private Cluster cluster;
    private long count;
    private long hash;
    private volatile String messages = "0 0";
    private volatile long inSnapshot;
    private volatile Cluster.Role role = Cluster.Role.FOLLOWER;

    public static void main(final String[] args) throws Exception
    {
        final ClusterNode node = new ClusterNode();
        try (ConsensusModule module = ConsensusModule.launch();
            ClusteredServiceContainer container = ClusteredServiceContainer.launch(
                new ClusteredServiceContainer.Context().clusteredService(node)))
        {
            System.out.println("READY");
            final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            while (null != input.readLine())
            {
                System.out.println(node.role + " " + node.messages + " " + node.inSnapshot);
            }
        }
        System.exit(0);
    }

    @Override
    public void onStart(final Cluster cluster, final Image snapshot)
    {
        this.cluster = cluster;
        while (null != snapshot && !snapshot.isEndOfStream())
        {
            cluster.idleStrategy().idle(snapshot.poll((state, offset, length, header) ->
            {
                count = state.getLong(offset);
                hash = state.getLong(offset + Long.BYTES);
                inSnapshot = count;
                messages = count + " " + hash;
            }, 1));
        }
    }

    @Override
    public void onSessionOpen(final ClientSession session, final long timestamp)
    {
    }

    @Override
    public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
    {
    }

    /** A message is its number and a value; one that the client has repeated is not applied again. */
    @Override
    public void onSessionMessage(
        final ClientSession session,
        final long timestamp,
        final DirectBuffer message,
        final int offset,
        final int length,
        final Header header)
    {
        if (message.getLong(offset) == count)
        {
            count++;
            hash = hash * 31 + message.getLong(offset + Long.BYTES);
            messages = count + " " + hash;
        }
        if (null != session)
        {
            buffer.putLong(0, count);
            while (session.offer(buffer, 0, Long.BYTES) < 0 && !session.isClosing())
            {
                cluster.idleStrategy().idle();
                if (cluster.role() != Cluster.Role.LEADER)
                {
                    return;
                }
            }
        }
    }

    @Override
    public void onTimerEvent(final long correlationId, final long timestamp)
    {
    }

    @Override
    public void onTakeSnapshot(final ExclusivePublication snapshot)
    {
        buffer.putLong(0, count);
        buffer.putLong(Long.BYTES, hash);
        while (snapshot.offer(buffer, 0, STATE_LENGTH) < 0)
        {
            cluster.idleStrategy().idle();
        }
    }

    @Override
    public void onRoleChange(final Cluster.Role newRole)
    {
        role = newRole;
    }

    @Override
    public void onTerminate(final Cluster cluster)
    {
    }
}
