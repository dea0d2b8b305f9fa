"""A schema with every SBE construct of a payload, and the output of sbe-tool for it.

It has the constructs of SBE's own Car example: headers, arrays, enums of characters and numbers,
sets, constants, composites within composites, optional values, nested groups, variable data with
and without characters; and in addition several versions, in either byte order.
"""

from __future__ import annotations

from support.builders.sbe_text import schema_text, var_data

SCHEMA = schema_text(
    'package="garage" id="77" version="3" semanticVersion="1.0"',
    types=var_data("text8", "uint8", "UTF-8")
    + var_data("latin16", "uint16", "ISO-8859-1")
    + var_data("bytes32", "uint32", most=1_073_741_824)
    + """\
    <enum name="Fuel" encodingType="char">
      <validValue name="PETROL">P</validValue>
      <validValue name="ELECTRIC">E</validValue>
    </enum>
    <enum name="Gears" encodingType="uint16">
      <validValue name="MANUAL">1</validValue>
      <validValue name="AUTOMATIC">700</validValue>
    </enum>
    <set name="Extras" encodingType="uint8">
      <choice name="sunRoof">0</choice>
      <choice name="sportsPack">1</choice>
      <choice name="cruiseControl">7</choice>
    </set>
    <set name="Wide" encodingType="uint64">
      <choice name="low">3</choice>
      <choice name="high">63</choice>
    </set>
    <composite name="Booster">
      <type name="boost" primitiveType="int16"/>
      <ref name="gears" type="Gears"/>
    </composite>
    <composite name="Engine">
      <type name="capacity" primitiveType="uint16"/>
      <type name="cylinders" primitiveType="uint8"/>
      <type name="maxRpm" primitiveType="uint16" presence="constant">9000</type>
      <type name="maker" primitiveType="char" length="3"/>
      <type name="fuel" primitiveType="char" presence="constant" length="6">Petrol</type>
      <type name="wear" primitiveType="int8" presence="optional"/>
      <ref name="booster" type="Booster"/>
      <ref name="extras" type="Extras"/>
    </composite>
    <type name="Plate" primitiveType="char" length="6" characterEncoding="US-ASCII"/>
    <type name="Note" primitiveType="char" length="5" characterEncoding="ISO-8859-1"
          presence="optional"/>
    <type name="Key" primitiveType="uint8" length="4"/>
    <type name="Laps" primitiveType="uint32" length="3"/>
    <type name="MaybeLaps" primitiveType="int16" length="2" presence="optional"/>
    <type name="MaybeShare" primitiveType="float" presence="optional"/>
    <type name="MaybeCount" primitiveType="uint32" presence="optional" nullValue="7"/>""",
    messages="""\
  <sbe:message name="Car" id="1">
    <field name="serial" id="1" type="uint64"/>
    <field name="year" id="2" type="uint16"/>
    <field name="fuel" id="3" type="Fuel"/>
    <field name="gears" id="4" type="Gears"/>
    <field name="defaultFuel" id="5" type="Fuel" presence="constant" valueRef="Fuel.ELECTRIC"/>
    <field name="laps" id="6" type="Laps"/>
    <field name="plate" id="7" type="Plate"/>
    <field name="extras" id="8" type="Extras"/>
    <field name="wide" id="9" type="Wide"/>
    <field name="engine" id="10" type="Engine"/>
    <field name="note" id="11" type="Note"/>
    <field name="key" id="12" type="Key"/>
    <field name="share" id="13" type="MaybeShare"/>
    <field name="count" id="14" type="MaybeCount"/>
    <field name="weight" id="15" type="double"/>
    <field name="letter" id="16" type="char"/>
    <field name="small" id="17" type="int8"/>
    <field name="reach" id="18" type="int64" presence="optional"/>
    <field name="maybeLaps" id="19" type="MaybeLaps" sinceVersion="1"/>
    <field name="spare" id="20" type="Engine" sinceVersion="2"/>
    <field name="offsetting" id="21" type="int32" offset="140" sinceVersion="3"/>
    <group name="fuelFigures" id="30" dimensionType="groupSizeEncoding">
      <field name="speed" id="31" type="uint16"/>
      <field name="usage" id="32" type="float"/>
      <field name="gears" id="33" type="Gears" sinceVersion="2"/>
      <data name="usageText" id="34" type="text8"/>
    </group>
    <group name="performanceFigures" id="40" dimensionType="groupSizeEncoding">
      <field name="octane" id="41" type="uint8"/>
      <group name="acceleration" id="42" dimensionType="groupSizeEncoding">
        <field name="mph" id="43" type="uint32"/>
        <field name="extras" id="44" type="Extras"/>
      </group>
    </group>
    <group name="owners" id="50" dimensionType="groupSizeEncoding" sinceVersion="2">
      <data name="owner" id="51" type="latin16"/>
    </group>
    <group name="marks" id="55" dimensionType="groupSizeEncoding" sinceVersion="2">
      <field name="mark" id="56" type="int16" sinceVersion="3"/>
    </group>
    <data name="maker" id="60" type="text8"/>
    <data name="manual" id="61" type="bytes32"/>
    <data name="remark" id="62" type="latin16" sinceVersion="3"/>
  </sbe:message>
  <sbe:message name="Tick" id="2">
    <field name="at" id="1" type="int64"/>
    <field name="fuel" id="2" type="Fuel"/>
  </sbe:message>
  <sbe:message name="Empty" id="3"/>""",
)

BIG_ENDIAN_SCHEMA = SCHEMA.replace("littleEndian", "bigEndian")
