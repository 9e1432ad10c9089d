# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# jq -r --slurpfile schema kofi.schema.json --arg kind NAME -f schema.jq FILE
#
# A line for each place where a document differs from the definition NAME of the schema,
# or has a member that the schema lacks. It knows the keywords that the schema has.

def is($wanted):
	type == $wanted or (type == "number" and $wanted == "integer" and . == floor);

def findings($of; $path):
	if $of["$ref"] then
		findings($schema[0]["$defs"][$of["$ref"] | ltrimstr("#/$defs/")]; $path)
	elif $of.anyOf then
		[$of.anyOf[] as $one | [findings($one; $path)]] |
		if any(.[]; . == []) then empty else .[0][] end
	elif [is([$of.type] | flatten | .[])] | any | not then
		"\($path): \(tojson | .[:60]) is no \([$of.type] | flatten | join(" or "))"
	elif type == "object" then
		(($of.required // [])[] as $name | select(has($name) | not) |
		 "\($path): \($name) is missing"),
		(to_entries[] | .key as $name | .value |
		 ($of.properties[$name] // $of.additionalProperties) as $one |
		 if $one then findings($one; "\($path).\($name)")
		 else "\($path): the schema lacks \($name)" end)
	elif type == "array" then
		to_entries[] | .key as $n | .value | findings($of.items; "\($path)[\($n)]")
	elif type == "string" then
		select($of.pattern) | select(test($of.pattern) | not) |
		"\($path): \(tojson) does not match \($of.pattern)"
	elif type == "number" then
		select(($of.minimum and . < $of.minimum) or ($of.maximum and . > $of.maximum)) |
		"\($path): \(.) is out of range"
	else
		empty
	end;

findings($schema[0]["$defs"][$kind] // error("the schema lacks \($kind)"); $kind)
