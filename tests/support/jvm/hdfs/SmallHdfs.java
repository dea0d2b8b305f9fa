import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS of one data node on loopback, in the given folder; ends when its input ends. */
public final class SmallHdfs
{
    public static void main(final String[] args) throws Exception
    {
        final Configuration configuration = new Configuration();
        configuration.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[0]);
        configuration.setBoolean("dfs.permissions.enabled", false);
        final MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(configuration).numDataNodes(1).format(true).build();
        cluster.waitActive();
        final InetSocketAddress http = cluster.getNameNode().getHttpAddress();
        System.out.println(cluster.getNameNodePort() + " " + http.getPort());
        while (System.in.read() >= 0)
        {
            // Nothing is said to it.
        }
        cluster.shutdown();
        System.exit(0);
    }
}
