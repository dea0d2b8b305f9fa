package harness;

import io.aeron.cluster.ClusterBackup;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A backup of an Aeron Cluster, on an archive and a media driver in another process; configured by system properties.
 * Prints READY, and its state for each line of input. Ends with its input.
 */
public final class ClusterBackupNode
{
    public static void main(final String[] args) throws Exception
    {
        try (ClusterBackup backup = ClusterBackup.launch())
        {
            System.out.println("READY");
            final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            while (null != input.readLine())
            {
                System.out.println(ClusterBackup.State.get(backup.context().stateCounter()));
            }
        }
        System.exit(0);
    }
}
