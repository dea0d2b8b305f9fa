package io.aeron.archive;

import io.aeron.archive.checksum.Checksum;
import io.aeron.archive.checksum.Checksums;
import org.agrona.concurrent.EpochClock;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Writes a catalog with Aeron's own code from a script of lines, for comparison byte for byte.
 * In Aeron's package, because its Catalog is not public.
 *
 * Arguments: directory, capacity, "none" or a checksum class, script file. Lines of the script are
 * tab-separated: "add" and 11 values; "stop", id, position, timestamp; "extend", id, control
 * session id, correlation id, session id; "start", id, position; "state", id, name.
 */
public final class GoldenCatalog
{
    public static void main(final String[] args) throws Exception
    {
        final Checksum checksum = "none".equals(args[2]) ? null : Checksums.newInstance(args[2]);
        final EpochClock clock = () -> 42L;
        try (Catalog catalog = new Catalog(
            new File(args[0]), null, 0, Long.parseLong(args[1]), clock, checksum, null))
        {
            for (final String line : Files.readAllLines(Path.of(args[3])))
            {
                apply(catalog, line.split("\t", -1));
            }
        }
    }

    private static void apply(final Catalog catalog, final String[] f)
    {
        switch (f[0])
        {
            case "add" -> catalog.addNewRecording(
                Long.parseLong(f[1]), Long.parseLong(f[2]), Integer.parseInt(f[3]),
                Integer.parseInt(f[4]), Integer.parseInt(f[5]), Integer.parseInt(f[6]),
                Integer.parseInt(f[7]), Integer.parseInt(f[8]), f[9], f[10], f[11]);
            case "stop" -> catalog.recordingStopped(
                Long.parseLong(f[1]), Long.parseLong(f[2]), Long.parseLong(f[3]));
            case "extend" -> catalog.extendRecording(
                Long.parseLong(f[1]), Long.parseLong(f[2]), Long.parseLong(f[3]),
                Integer.parseInt(f[4]));
            case "start" -> catalog.startPosition(Long.parseLong(f[1]), Long.parseLong(f[2]));
            case "state" -> catalog.changeState(
                Long.parseLong(f[1]), io.aeron.archive.codecs.RecordingState.valueOf(f[2]));
            default -> throw new IllegalArgumentException(f[0]);
        }
    }
}
