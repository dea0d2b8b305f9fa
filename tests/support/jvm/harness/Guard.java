package harness;

import io.aeron.archive.codecs.ArchiveIdRequestDecoder;
import io.aeron.archive.codecs.KeepAliveRequestDecoder;
import io.aeron.archive.codecs.ListRecordingsRequestDecoder;
import io.aeron.archive.codecs.StopPositionRequestDecoder;
import io.aeron.security.Authenticator;
import io.aeron.security.AuthenticatorSupplier;
import io.aeron.security.AuthorisationService;
import io.aeron.security.AuthorisationServiceSupplier;
import io.aeron.security.SessionProxy;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** The Java version of the authenticator and authorisation service that authenticator.py documents. */
public final class Guard implements AuthenticatorSupplier
{
    private static final Set<Integer> READS = Set.of(
        ArchiveIdRequestDecoder.TEMPLATE_ID,
        KeepAliveRequestDecoder.TEMPLATE_ID,
        ListRecordingsRequestDecoder.TEMPLATE_ID,
        StopPositionRequestDecoder.TEMPLATE_ID);

    @Override
    public Authenticator get()
    {
        return new Decisions();
    }

    private static String text(final byte[] bytes)
    {
        return new String(bytes, StandardCharsets.US_ASCII);
    }

    private static byte[] bytes(final String text)
    {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static final class Decisions implements Authenticator
    {
        private final Map<Long, String> credentials = new HashMap<>();
        private final Map<Long, String> answers = new HashMap<>();

        @Override
        public void onConnectRequest(final long sessionId, final byte[] encoded, final long nowMs)
        {
            credentials.put(sessionId, text(encoded));
        }

        @Override
        public void onChallengeResponse(final long sessionId, final byte[] encoded, final long nowMs)
        {
            answers.put(sessionId, text(encoded));
        }

        @Override
        public void onConnectedSession(final SessionProxy proxy, final long nowMs)
        {
            final String[] parts = (credentials.get(proxy.sessionId()) + ":").split(":", -1);
            switch (parts[0])
            {
                case "open" -> proxy.authenticate(bytes(parts[1]));
                case "ask" -> proxy.challenge(bytes("who is " + parts[1] + "?"));
                case "hang" ->
                {
                }
                default -> proxy.reject();
            }
        }

        @Override
        public void onChallengedSession(final SessionProxy proxy, final long nowMs)
        {
            final String answer = answers.get(proxy.sessionId());
            if (null != answer)
            {
                final String name = credentials.get(proxy.sessionId()).split(":")[1];
                if (answer.equals("it is " + name))
                {
                    proxy.authenticate(bytes(name));
                }
                else
                {
                    proxy.reject();
                }
            }
        }
    }

    /** The rights of a principal, by its name. */
    public static final class Actions implements AuthorisationServiceSupplier
    {
        @Override
        public AuthorisationService get()
        {
            return (protocolId, actionId, type, principal) ->
            {
                final String name = null == principal ? "" : text(principal);
                return (!"reader".equals(name) || READS.contains(actionId)) && !"nobody".equals(name);
            };
        }
    }
}
