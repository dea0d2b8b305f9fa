// Prints, for each channel URI on standard input, its stripped channel in the reference archive,
// or "!" and the exception.
import io.aeron.ChannelUri;
import io.aeron.ChannelUriStringBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

public class StrippedChannel
{
    public static void main(final String[] args) throws Exception
    {
        final Method method = Class.forName("io.aeron.archive.ArchiveConductor")
            .getDeclaredMethod("strippedChannelBuilder", ChannelUri.class);
        method.setAccessible(true);
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine())
        {
            try
            {
                final Object builder = method.invoke(null, ChannelUri.parse(line));
                System.out.println(((ChannelUriStringBuilder)builder).build());
            }
            catch (final InvocationTargetException ex)
            {
                System.out.println("! " + ex.getCause());
            }
            catch (final RuntimeException ex)
            {
                System.out.println("! " + ex);
            }
        }
    }
}
