package harness;

import io.aeron.exceptions.RegistrationException;
import io.aeron.archive.client.ArchiveException;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An Aeron Archive client driven over stdin and stdout, one JSON object a line:
 * {"method": ..., "args": [...]} is answered by {"result": ...} or
 * {"error": message, "errorCode": number or null, "exception": class}.
 *
 * Methods of {@link Streams} (publications, subscriptions, counters) and {@link ArchiveCalls}
 * (connect, and every method of AeronArchive by its own name) are found by name.
 */
public final class ClientProcess
{
    private ClientProcess()
    {
    }

    public static void main(final String[] args) throws Exception
    {
        final PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

        try (Streams streams = new Streams(args[0]); ArchiveCalls archive = new ArchiveCalls(streams))
        {
            out.println("{\"result\":\"READY\"}");
            out.flush();
            String line;
            while ((line = in.readLine()) != null)
            {
                out.println(Json.write(answer(line, streams, archive)));
                out.flush();
            }
        }
        System.exit(0);
    }

    private static Map<String, Object> answer(
        final String line, final Streams streams, final ArchiveCalls archive)
    {
        final Map<String, Object> response = new LinkedHashMap<>();
        try
        {
            final Map<?, ?> request = (Map<?, ?>)Json.parse(line);
            final String method = (String)request.get("method");
            final List<?> args = (List<?>)request.get("args");
            response.put("result",
                Invoker.has(Streams.class, method) ? Invoker.call(streams, streams, method, args) :
                archive.call(method, args));
        }
        catch (final InvocationTargetException ex)
        {
            failure(response, ex.getCause());
        }
        catch (final Throwable ex)
        {
            failure(response, ex);
        }
        return response;
    }

    private static void failure(final Map<String, Object> response, final Throwable ex)
    {
        ex.printStackTrace();
        response.put("error", String.valueOf(ex.getMessage()));
        response.put("errorCode",
            ex instanceof ArchiveException archive ? (Integer)archive.errorCode() :
            ex instanceof RegistrationException registration ? (Integer)registration.errorCodeValue() : null);
        response.put("exception", ex.getClass().getSimpleName());
    }
}
