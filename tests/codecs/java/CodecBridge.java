import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Encodes and decodes with Aeron's own SBE flyweights, found by reflection, as requested on stdin.
 *
 * One request a line, one response a line, parts separated by tabs:
 *   describe JAR PACKAGE                     -> for each message NAME:TEMPLATE:BLOCK:VERSION:FIELDS,
 *                                               FIELDS = name/type/null/since joined by ','
 *   encode PACKAGE MESSAGE name=value ...    -> hex of header and body; the values in wire order
 *   decode PACKAGE MESSAGE HEX name ...      -> the values, in the order of the request
 * Types are long, int, byte, text, bytes, or an enum's class name. Text and bytes travel as hex,
 * enums as names. A failure returns "! exception". Ends when stdin ends.
 */
public final class CodecBridge
{
    private static final HexFormat HEX = HexFormat.of();

    public static void main(final String[] args) throws Exception
    {
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = in.readLine()) != null)
        {
            String answer;
            try
            {
                final String[] request = line.split("\t", -1);
                answer = switch (request[0])
                {
                    case "describe" -> describe(request[1], request[2]);
                    case "encode" -> encode(request);
                    case "decode" -> decode(request);
                    default -> throw new IllegalArgumentException(request[0]);
                };
            }
            catch (final InvocationTargetException ex)
            {
                answer = "! " + ex.getCause();
            }
            catch (final Exception ex)
            {
                answer = "! " + ex;
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
    }

    private static String describe(final String jar, final String pkg) throws Exception
    {
        final TreeMap<String, String> messages = new TreeMap<>();
        try (JarFile file = new JarFile(jar))
        {
            for (final var entry : (Iterable<java.util.jar.JarEntry>)file.stream()::iterator)
            {
                final String name = entry.getName().replace('/', '.').replaceAll("\\.class$", "");
                if (name.startsWith(pkg + ".") && name.endsWith("Encoder") &&
                    name.indexOf('.', pkg.length() + 1) < 0)
                {
                    final Class<?> encoder = Class.forName(name);
                    if (has(encoder, "TEMPLATE_ID"))
                    {
                        final String message =
                            name.substring(pkg.length() + 1, name.length() - "Encoder".length());
                        messages.put(message, message + ":" + constant(encoder, "TEMPLATE_ID") +
                            ":" + constant(encoder, "BLOCK_LENGTH") +
                            ":" + constant(encoder, "SCHEMA_VERSION") + ":" + fields(encoder));
                    }
                }
            }
        }
        return String.join("\t", messages.values());
    }

    private static String fields(final Class<?> encoder) throws Exception
    {
        final StringBuilder result = new StringBuilder();
        for (final Method method : encoder.getMethods())
        {
            final String id = method.getName();
            if (id.endsWith("Id") && method.getParameterCount() == 0 && id.length() > 2 &&
                java.lang.reflect.Modifier.isStatic(method.getModifiers()))
            {
                final String name = id.substring(0, id.length() - 2);
                final Class<?> type = type(encoder, name);
                String null_ = "";
                String typeName = "bytes";
                if (type == String.class)
                {
                    typeName = "text";
                }
                else if (type != null)
                {
                    typeName = type.getSimpleName();
                    null_ = type.isEnum() ? "NULL_VAL" :
                        encoder.getMethod(name + "NullValue").invoke(null).toString();
                }
                // Encoders of variable data do not tell since when; their decoders do.
                final Class<?> decoder = Class.forName(
                    encoder.getName().replaceAll("Encoder$", "Decoder"));
                final Object since = decoder.getMethod(name + "SinceVersion").invoke(null);
                result.append(result.isEmpty() ? "" : ",")
                    .append(name).append('/').append(typeName).append('/').append(null_)
                    .append('/').append(since);
            }
        }
        return result.toString();
    }

    private static String encode(final String[] request) throws Exception
    {
        final Class<?> type = Class.forName(request[1] + "." + request[2] + "Encoder");
        final Class<?> header = Class.forName(request[1] + ".MessageHeaderEncoder");
        final Object encoder = type.getConstructor().newInstance();
        final MutableDirectBuffer buffer = new ExpandableArrayBuffer();
        type.getMethod("wrapAndApplyHeader", MutableDirectBuffer.class, int.class, header)
            .invoke(encoder, buffer, 0, header.getConstructor().newInstance());
        for (int i = 3; i < request.length; i++)
        {
            final int equals = request[i].indexOf('=');
            set(type, encoder, request[i].substring(0, equals), request[i].substring(equals + 1));
        }
        final byte[] bytes = new byte[8 + (int)type.getMethod("encodedLength").invoke(encoder)];
        buffer.getBytes(0, bytes);
        return HEX.formatHex(bytes);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void set(
        final Class<?> type, final Object encoder, final String name, final String value)
        throws Exception
    {
        final Class<?> kind = type(type, name);
        if (kind == null)
        {
            final byte[] bytes = HEX.parseHex(value);
            type.getMethod("put" + capital(name), byte[].class, int.class, int.class)
                .invoke(encoder, bytes, 0, bytes.length);
            return;
        }
        final Object argument;
        if (kind == String.class)
        {
            argument = new String(HEX.parseHex(value), StandardCharsets.US_ASCII);
        }
        else if (kind.isEnum())
        {
            argument = Enum.valueOf((Class)kind, value);
        }
        else if (kind == long.class)
        {
            argument = Long.parseLong(value);
        }
        else if (kind == int.class)
        {
            argument = Integer.parseInt(value);
        }
        else
        {
            argument = Byte.parseByte(value);
        }
        type.getMethod(name, kind).invoke(encoder, argument);
    }

    private static String decode(final String[] request) throws Exception
    {
        final Class<?> type = Class.forName(request[1] + "." + request[2] + "Decoder");
        final Class<?> header = Class.forName(request[1] + ".MessageHeaderDecoder");
        final Object decoder = type.getConstructor().newInstance();
        type.getMethod("wrapAndApplyHeader", DirectBuffer.class, int.class, header).invoke(
            decoder, new UnsafeBuffer(HEX.parseHex(request[3])), 0,
            header.getConstructor().newInstance());
        final StringBuilder result = new StringBuilder("=");
        for (int i = 4; i < request.length; i++)
        {
            result.append('\t').append(get(type, decoder, request[i]));
        }
        return result.toString();
    }

    private static String get(final Class<?> type, final Object decoder, final String name)
        throws Exception
    {
        if (!hasMethod(type, name))
        {
            final byte[] bytes = new byte[(int)type.getMethod(name + "Length").invoke(decoder)];
            type.getMethod("get" + capital(name), byte[].class, int.class, int.class)
                .invoke(decoder, bytes, 0, bytes.length);
            return HEX.formatHex(bytes);
        }
        final Object value = type.getMethod(name).invoke(decoder);
        return value instanceof String text ?
            HEX.formatHex(text.getBytes(StandardCharsets.US_ASCII)) : value.toString();
    }

    /** The type that the encoder takes for a field; null for variable data without characters. */
    private static Class<?> type(final Class<?> encoder, final String name)
    {
        Class<?> found = null;
        for (final Method method : encoder.getMethods())
        {
            if (method.getName().equals(name) && method.getParameterCount() == 1 &&
                (found == null || method.getParameterTypes()[0] == String.class))
            {
                found = method.getParameterTypes()[0];
            }
        }
        return found;
    }

    private static boolean hasMethod(final Class<?> type, final String name)
    {
        try
        {
            type.getMethod(name);
            return true;
        }
        catch (final NoSuchMethodException ex)
        {
            return false;
        }
    }

    private static boolean has(final Class<?> type, final String constant)
    {
        try
        {
            type.getField(constant);
            return true;
        }
        catch (final NoSuchFieldException ex)
        {
            return false;
        }
    }

    private static Object constant(final Class<?> type, final String name) throws Exception
    {
        return type.getField(name).get(null);
    }

    private static String capital(final String name)
    {
        return Character.toUpperCase(name.charAt(0)) + name.substring(1);
    }
}
