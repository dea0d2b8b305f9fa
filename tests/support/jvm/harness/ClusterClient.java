package harness;

import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;

/**
 * A client of a cluster of ClusterNode, configured by system properties. Prints the leader's member id when it is
 * connected. Each line of input is a number of messages: it sends them, each until the service has applied it, and
 * prints the leader and the number of messages that the service has applied. Ends with its input.
 */
public final class ClusterClient implements EgressListener
{
    private static final long RETRY_NS = TimeUnit.MILLISECONDS.toNanos(500);
    /** Until a new leader is elected, on a busy machine: after 4 s the session would close itself. */
    private static final long NEW_LEADER_NS = TimeUnit.SECONDS.toNanos(60);

    private final UnsafeBuffer buffer = new UnsafeBuffer(new byte[2 * Long.BYTES]);
    private long applied;

    public static void main(final String[] args) throws Exception
    {
        final ClusterClient client = new ClusterClient();
        client.applied = Long.parseLong(args[0]);
        try (AeronCluster cluster = AeronCluster.connect(new AeronCluster.Context()
            .egressListener(client)
            .newLeaderTimeoutNs(NEW_LEADER_NS)))
        {
            System.out.println(cluster.leaderMemberId());
            final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            for (String line = input.readLine(); null != line; line = input.readLine())
            {
                final long end = client.applied + Long.parseLong(line);
                while (client.applied < end)
                {
                    client.send(cluster);
                }
                System.out.println(cluster.leaderMemberId() + " " + client.applied);
            }
        }
        System.exit(0);
    }

    private void send(final AeronCluster cluster)
    {
        final long index = applied;
        buffer.putLong(0, index);
        buffer.putLong(Long.BYTES, index * index);
        final boolean isSent = cluster.offer(buffer, 0, buffer.capacity()) > 0;
        final long retryNs = System.nanoTime() + (isSent ? RETRY_NS : 0);
        do
        {
            if (0 == cluster.pollEgress())
            {
                Thread.yield();
            }
            if (cluster.isClosed())
            {
                throw new IllegalStateException("the cluster has closed the session");
            }
        }
        while (applied == index && System.nanoTime() < retryNs);
    }

    @Override
    public void onMessage(
        final long clusterSessionId,
        final long timestamp,
        final DirectBuffer message,
        final int offset,
        final int length,
        final Header header)
    {
        applied = Math.max(applied, message.getLong(offset));
    }
}
