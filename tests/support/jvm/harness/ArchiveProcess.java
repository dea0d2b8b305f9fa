package harness;

import io.aeron.archive.Archive;
import io.aeron.archive.ArchivingMediaDriver;

import java.io.IOException;

/**
 * The Java archive as a child process: with its own driver ("embedded") or on a running one
 * ("external"), configured by system properties. Prints READY once it serves and ends cleanly when its
 * input ends, so that it cannot outlive the test run that started it.
 */
public final class ArchiveProcess
{
    private ArchiveProcess()
    {
    }

    public static void main(final String[] args) throws Exception
    {
        final AutoCloseable archive;
        try
        {
            archive = "external".equals(args[0]) ? Archive.launch() : ArchivingMediaDriver.launch();
        }
        catch (final Throwable ex)
        {
            ex.printStackTrace();
            System.out.println("FAILED " + ex.getMessage());
            System.exit(1);
            return;
        }

        System.out.println("READY");
        System.out.flush();
        try (archive)
        {
            waitForEndOfInput();
        }
        System.exit(0);
    }

    private static void waitForEndOfInput() throws IOException
    {
        while (System.in.read() >= 0)
        {
            Thread.onSpinWait();
        }
    }
}
