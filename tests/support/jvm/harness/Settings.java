package harness;

import io.aeron.archive.Archive;
import io.aeron.archive.client.AeronArchive;

import java.io.FileInputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;

/**
 * Prints Java's configuration as JSON: `constants` the constants of the archive's two
 * Configuration classes by name, `properties FILE` the properties that are in a file, or the error.
 */
public final class Settings
{
    private Settings()
    {
    }

    public static void main(final String[] args) throws Exception
    {
        final PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        final Map<String, Object> result = new LinkedHashMap<>();
        if ("constants".equals(args[0]))
        {
            constants(Archive.Configuration.class, result);
            constants(AeronArchive.Configuration.class, result);
            out.println(Json.write(result));
        }
        else
        {
            for (int i = 1; i < args.length; i++)
            {
                out.println(Json.write(properties(args[i])));
            }
        }
        out.flush();
    }

    private static void constants(final Class<?> type, final Map<String, Object> into) throws Exception
    {
        for (final Field field : type.getDeclaredFields())
        {
            final int wanted = Modifier.PUBLIC | Modifier.STATIC;
            if ((field.getModifiers() & wanted) == wanted)
            {
                final Object value = field.get(null);
                if (value instanceof Number number)
                {
                    into.put(field.getName(), number.longValue());
                }
                else if (value instanceof String || value instanceof Boolean)
                {
                    into.put(field.getName(), value);
                }
            }
        }
    }

    private static Map<String, Object> properties(final String file) throws Exception
    {
        final Map<String, Object> found = new LinkedHashMap<>();
        final Properties properties = new Properties();
        try (InputStream in = new FileInputStream(file))
        {
            properties.load(in);
        }
        catch (final IllegalArgumentException ex)
        {
            return Map.of("error", String.valueOf(ex.getMessage()));
        }
        properties.forEach((name, value) -> found.put((String)name, value));
        return Map.of("properties", found);
    }
}
