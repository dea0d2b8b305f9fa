import extension.BooleanType;
import extension.BoostType;
import extension.CarEncoder;
import extension.MessageHeaderEncoder;
import extension.Model;
import java.util.Arrays;
import java.util.HexFormat;
import org.agrona.ExpandableArrayBuffer;

/** Encodes a car of SBE's example schema in its newer version, and prints it as a line of hex. */
public final class ExampleCarWriter
{
    public static void main(final String[] args)
    {
        final ExpandableArrayBuffer buffer = new ExpandableArrayBuffer(4096);
        final CarEncoder car = new CarEncoder()
            .wrapAndApplyHeader(buffer, 0, new MessageHeaderEncoder());
        car.serialNumber(99).modelYear(2020).available(BooleanType.F).code(Model.B)
            .vehicleCode("zz");
        for (int i = 0; i < 4; i++)
        {
            car.someNumbers(i, i * 1_000_000_000L);
        }
        car.extras().clear().sunRoof(true);
        car.engine().capacity(1600).numCylinders((short)3).manufacturerCode("abc")
            .efficiency((byte)50).boosterEnabled(BooleanType.F)
            .booster().boostType(BoostType.KERS).horsePower((short)255);
        car.uuid(0, 7).uuid(1, -8).cupHolderCount((short)119);
        car.fuelFiguresCount(1).next().speed(50).mpg(1.5f).usageDescription("Town");
        car.performanceFiguresCount(0);
        car.manufacturer("Zo\u00eb").model("").activationCode("x");
        System.out.println(HexFormat.of().formatHex(
            Arrays.copyOf(buffer.byteArray(), 8 + car.encodedLength())));
    }
}
