package harness;

import io.aeron.security.CredentialsSupplier;

import javax.crypto.Mac;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Proves knowledge of a secret to an archive at an address, as docs/security.md describes. */
record UserSecret(String user, String secret, String address) implements CredentialsSupplier
{
    private static final Pattern CHALLENGE = Pattern.compile("scram-sha-256 r=([^,]+),s=([^,]+),i=([0-9]+)");

    @Override
    public byte[] encodedCredentials()
    {
        return user.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public byte[] onChallenge(final byte[] encodedChallenge)
    {
        final String challenge = new String(encodedChallenge, StandardCharsets.US_ASCII);
        final Matcher parts = CHALLENGE.matcher(challenge);
        if (!parts.matches())
        {
            throw new IllegalStateException("unexpected challenge: " + challenge);
        }
        try
        {
            final byte[] salted = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(
                new PBEKeySpec(
                    secret.toCharArray(),
                    Base64.getDecoder().decode(parts.group(2)),
                    Integer.parseInt(parts.group(3)),
                    256)).getEncoded();
            final byte[] clientKey = hmac(salted, "Client Key");
            final byte[] storedKey = MessageDigest.getInstance("SHA-256").digest(clientKey);
            final byte[] signature = hmac(storedKey, user + "\0" + challenge + "\0" + address);
            for (int i = 0; i < clientKey.length; i++)
            {
                clientKey[i] ^= signature[i];
            }
            final String proof = Base64.getEncoder().encodeToString(clientKey);
            return ("c=" + address + ",p=" + proof).getBytes(StandardCharsets.US_ASCII);
        }
        catch (final GeneralSecurityException ex)
        {
            throw new IllegalStateException(ex);
        }
    }

    private static byte[] hmac(final byte[] key, final String text) throws GeneralSecurityException
    {
        final Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }
}
