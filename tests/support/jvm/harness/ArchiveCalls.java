package harness;

import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.RecordingSignalConsumer;
import io.aeron.security.CredentialsSupplier;

import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The archive client of this process: connect, close, signals, and AeronArchive's own methods. */
final class ArchiveCalls implements AutoCloseable
{
    private final Streams streams;
    private final List<Object> signals = new ArrayList<>();
    private AeronArchive archive;

    ArchiveCalls(final Streams streams)
    {
        this.streams = streams;
    }

    Object call(final String method, final List<?> args)
        throws InvocationTargetException, IllegalAccessException
    {
        if ("connect".equals(method))
        {
            return connect((Map<?, ?>)args.get(0));
        }
        if (null == archive)
        {
            throw new IllegalStateException("call connect before " + method);
        }
        switch (method)
        {
            case "disconnect":
                close();
                return null;
            case "takeSignals":
                archive.pollForRecordingSignals();
                final List<Object> taken = new ArrayList<>(signals);
                signals.clear();
                return taken;
            default:
                return Invoker.call(archive, streams, method, args);
        }
    }

    private Object connect(final Map<?, ?> properties)
    {
        close();
        final RecordingSignalConsumer onSignal =
            (controlSessionId, correlationId, recordingId, subscriptionId, position, signal) ->
            {
                final Map<String, Object> row = new LinkedHashMap<>();
                row.put("controlSessionId", controlSessionId);
                row.put("correlationId", correlationId);
                row.put("recordingId", recordingId);
                row.put("subscriptionId", subscriptionId);
                row.put("position", position);
                row.put("signal", signal.name());
                signals.add(row);
            };
        final AeronArchive.Context context =
            new AeronArchive.Context().aeron(streams.aeron()).recordingSignalConsumer(onSignal);
        final Map<Object, Object> settings = new LinkedHashMap<>(properties);
        final Object credentials = settings.remove("credentials");
        final Object challengeAnswer = settings.remove("challengeAnswer");
        final Object secret = settings.remove("secret");
        final Object address = settings.remove("address");
        if (null != credentials)
        {
            context.credentialsSupplier(null != secret ?
                new UserSecret((String)credentials, (String)secret, (String)address) :
                supplier((String)credentials, (String)challengeAnswer));
        }
        archive = AeronArchive.connect(Invoker.fill(context, settings));
        return Map.of(
            "controlSessionId", archive.controlSessionId(),
            "archiveId", archive.archiveId());
    }

    /** Sends `credentials`; responds to a challenge with `answer`, where %s stands for the challenge. */
    private static CredentialsSupplier supplier(final String credentials, final String answer)
    {
        return new CredentialsSupplier()
        {
            @Override
            public byte[] encodedCredentials()
            {
                return credentials.getBytes(StandardCharsets.UTF_8);
            }

            @Override
            public byte[] onChallenge(final byte[] encodedChallenge)
            {
                final String challenge = new String(encodedChallenge, StandardCharsets.UTF_8);
                return String.valueOf(answer).replace("%s", challenge).getBytes(StandardCharsets.UTF_8);
            }
        };
    }

    @Override
    public void close()
    {
        if (null != archive)
        {
            archive.close();
            archive = null;
        }
    }
}
