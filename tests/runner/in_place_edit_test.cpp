#include "runner/in_place_edit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <random>

#include "core/json.h"
#include "space/configuration.h"
#include "user_error.h"

namespace krigtune::in_place_edit_test {

using runner::FileFormat;
using runner::IfMissing;
using runner::NewValue;

constexpr FileFormat kYaml = FileFormat::kYaml;
constexpr FileFormat kToml = FileFormat::kToml;
constexpr FileFormat kJson = FileFormat::kJson;

std::string set(FileFormat format, const std::string& document, const std::string& key, const NewValue& value) {
  return runner::with_value(format, document, key, value, IfMissing::kRefuse);
}
std::string add(FileFormat format, const std::string& document, const std::string& key, const NewValue& value) {
  return runner::with_value(format, document, key, value, IfMissing::kAdd);
}

struct Case {
  FileFormat format;
  std::string before;
  std::string key;
  NewValue value;
  std::string after;
};

TEST(InPlaceEdit, ReplacesOneValueAndNothingElse) {
  const std::vector<Case> cases = {
      {kYaml, "# c\nt:\n  b: 8  # a rank\n\n  lr: 1\n", "t.b", {"4"}, "# c\nt:\n  b: 4  # a rank\n\n  lr: 1\n"},
      {kYaml, "a: 1\r\nb: \xc3\xa9\r\n\r\nc: 3 # x\r\n", "c", {"4"}, "a: 1\r\nb: \xc3\xa9\r\n\r\nc: 4 # x\r\n"},
      {kYaml,
       "\xEF\xBB\xBF"
       "a: 1\n",
       "a",
       {"4"},
       "\xEF\xBB\xBF"
       "a: 4\n"},
      {kYaml, "m: {k: v, l: [1, two words, 3]}", "m.l.1", {"4"}, "m: {k: v, l: [1, 4, 3]}"},
      {kYaml, "l:\n  - a\n  - k: 1\n    z: 2\n", "l.1.z", {"4"}, "l:\n  - a\n  - k: 1\n    z: 4\n"},
      {kYaml, "a: &x 4 # c\nb: *x\n", "b", {"5"}, "a: &x 4 # c\nb: 5\n"},
      {kYaml, "a: &x 4 # c\nb: *x\n", "a", {"5"}, "a: &x 5 # c\nb: *x\n"},
      {kYaml, "a: !!int 4\n", "a", {"5"}, "a: !!int 5\n"},
      {kYaml,
       "base: &b\n  x: 1\nother:\n  <<: *b\n  x: 2\n",
       "other.x",
       {"5"},
       "base: &b\n  x: 1\nother:\n  <<: *b\n  x: 5\n"},
      {kYaml, "a: 'q'\nb: \"q\"\n", "a", {"it's", true}, "a: 'it''s'\nb: \"q\"\n"},
      {kYaml, "a: 'q'\nb: \"8\"\n", "b", {"4"}, "a: 'q'\nb: \"4\"\n"},
      {kYaml, "a: \"auto\"\n", "a", {"4"}, "a: 4\n"},
      {kYaml, "a: none\n", "a", {"full", true}, "a: full\n"},
      {kYaml, "a: none\n", "a", {"on", true}, "a: \"on\"\n"},
      {kYaml, "a: none\n", "a", {"8", true}, "a: \"8\"\n"},
      {kYaml, "a: none\n", "a", {"x: y", true}, "a: \"x: y\"\n"},
      {kYaml, "a: none\n", "a", {"", true}, "a: \"\"\n"},
      {kYaml, "a: 1.0e-4\n", "a", {"1e-05"}, "a: 1.0e-05\n"},  // PyYAML reads 1e-05 as a text
      {kYaml, "a:\nb: 1\n", "a", {"4"}, "a: 4\nb: 1\n"},
      {kYaml, "a: # c\nb: 1\n", "a", {"4"}, "a: 4 # c\nb: 1\n"},
      {kYaml, "a: ~\nb: null\n", "b", {"true"}, "a: ~\nb: true\n"},
      {kYaml, "a: 4 # c\nb: 1\n", "a", {"null"}, "a: null # c\nb: 1\n"},
      {kYaml, "a: \"me/model\"\n", "a", {"null"}, "a: null\n"},
      {kYaml, "a: none\n", "a", {"null", true}, "a: \"null\"\n"},
      {kJson, "{\"a\": \"me\"}", "a", {"null"}, "{\"a\": null}"},
      {kYaml, "a: |\n  one\n\n  two\nb: 1\n", "a", {"4"}, "a: 4\nb: 1\n"},
      {kYaml, "a: one\n  two\n  three\nb: 1\n", "a", {"4"}, "a: 4\nb: 1\n"},
      {kYaml, "a:\n  \"below\"\n", "a", {"4"}, "a:\n  \"4\"\n"},
      {kYaml, "a.b: 1\na:\n  c: 2\n", "a.b", {"4"}, "a.b: 4\na:\n  c: 2\n"},
      {kYaml, "\"a\": 1\n'b' : 2\n", "b", {"4"}, "\"a\": 1\n'b' : 4\n"},
      {kYaml, "- 1\n- 2\n", "1", {"4"}, "- 1\n- 4\n"},
      {kToml, "a = 1\r\n[t]\r\nb = 8 # c\r\n", "t.b", {"4"}, "a = 1\r\n[t]\r\nb = 4 # c\r\n"},
      {kToml, "s = \"\xc3\xa9\" # \xc3\xa9\nb = 1\n", "s", {"x", true}, "s = \"x\" # \xc3\xa9\nb = 1\n"},
      {kToml, "s = 'lit'\n", "s", {"x", true}, "s = 'x'\n"},
      {kToml, "s = 'lit'\n", "s", {"it's", true}, "s = \"it's\"\n"},
      {kToml, "s = \"8\"\n", "s", {"4"}, "s = \"4\"\n"},
      {kToml, "s = \"auto\"\n", "s", {"4"}, "s = 4\n"},
      {kToml, "s = \"\"\"\nmulti\nline\"\"\"\nb = 1\n", "s", {"x", true}, "s = \"x\"\nb = 1\n"},
      {kToml, "x = 1.5\n", "x", {"4"}, "x = 4.0\n"},
      {kToml, "x = 1_000\n", "x", {"4"}, "x = 4\n"},
      {kToml, "i = {x = 1, y = [1, 2]}\n", "i.y.1", {"4"}, "i = {x = 1, y = [1, 4]}\n"},
      {kToml, "[a]\nb.c = 1\n[a.d]\ne = 2\n", "a.b.c", {"4"}, "[a]\nb.c = 4\n[a.d]\ne = 2\n"},
      {kToml, "[[r]]\nk = 1\n[[r]]\nk = 2\n", "r.1.k", {"4"}, "[[r]]\nk = 1\n[[r]]\nk = 4\n"},
      {kToml, "f=true\n", "f", {"false"}, "f=false\n"},
      {kToml, "d = \"bf16\"\n", "d", {"no\"n\\e", true}, "d = \"no\\\"n\\\\e\"\n"},
      {kJson,
       "{\n  \"a\": 1, // c\n  \"b\": [1, {\"c\": 2}],\n}\n",
       "b.1.c",
       {"4"},
       "{\n  \"a\": 1, // c\n  \"b\": [1, {\"c\": 4}],\n}\n"},
      {kJson, "{\"a\":\"x\\\"y\",\"b\":1}", "b", {"4"}, "{\"a\":\"x\\\"y\",\"b\":4}"},
      {kJson, "{\"a\": \"8\"}", "a", {"4"}, "{\"a\": \"4\"}"},
      {kJson, "{\"a\": \"auto\"}", "a", {"4"}, "{\"a\": 4}"},
      {kJson, "{\"a\": \"auto\"}", "a", {"true"}, "{\"a\": true}"},
      {kJson, "{\"a\": \"auto\"}", "a", {"bf16"}, "{\"a\": \"bf16\"}"},
      {kJson, "{\"a\": null}", "a", {"4", true}, "{\"a\": \"4\"}"},
      {kJson, "{\"a.b\": 1, \"a\": {\"c\": 2}}", "a.b", {"4"}, "{\"a.b\": 4, \"a\": {\"c\": 2}}"},
      {kJson, "{\"a\" : 5e8 , \"b\": 2}", "a", {"1e-05"}, "{\"a\" : 1e-05 , \"b\": 2}"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(set(c.format, c.before, c.key, c.value), c.after) << c.key << " of " << c.before;
}

TEST(InPlaceEdit, AddsWhatIsMissing) {
  const std::vector<Case> cases = {
      {kYaml, "t:\n  b: 8  # a rank\n# end\n", "t.o", {"4"}, "t:\n  b: 8  # a rank\n  o: 4\n# end\n"},
      {kYaml, "t:\n  b: 8", "t.o", {"4"}, "t:\n  b: 8\n  o: 4\n"},
      {kYaml, "t:\r\n  b: 8\r\n", "t.n.m", {"false"}, "t:\r\n  b: 8\r\n  \"n\":\r\n    m: false\r\n"},
      {kYaml, "a: 1\n", "x.z", {"4"}, "a: 1\nx:\n  z: 4\n"},
      {kYaml, "m: {k: v}\n", "m.o", {"4"}, "m: {o: 4, k: v}\n"},
      {kYaml, "m: {}\n", "m.o.p", {"4"}, "m: {o: {p: 4}}\n"},
      {kYaml, "e:\nb: 1\n", "e.f", {"4"}, "e:\n  f: 4\nb: 1\n"},
      {kYaml, "l:\n  - k: 1\n    z: 2\n", "l.0.p", {"4"}, "l:\n  - k: 1\n    z: 2\n    p: 4\n"},
      {kYaml, "t:\n  b: |\n    text\n    more\nc: 1\n", "t.o", {"4"}, "t:\n  b: |\n    text\n    more\n  o: 4\nc: 1\n"},
      {kYaml, "", "a.b", {"4"}, "a:\n  b: 4\n"},
      {kYaml, "# nothing\n", "a", {"4"}, "# nothing\na: 4\n"},
      {kYaml, "a: 1\n", "a", {"4"}, "a: 4\n"},  // it exists already
      {kToml, "a = 1\n\n[t]\nb = 8 # c\n\n[u]\n", "t.n", {"4"}, "a = 1\n\n[t]\nb = 8 # c\nn = 4\n\n[u]\n"},
      {kToml, "a = 1\n\n[t]\n", "c", {"4"}, "a = 1\nc = 4\n\n[t]\n"},
      {kToml, "[t]\n[u]\n", "t.x.y", {"4"}, "[t]\nx.y = 4\n[u]\n"},
      {kToml, "[t]\nb = 1\n", "top", {"4"}, "top = 4\n[t]\nb = 1\n"},
      {kToml, "[t]\nb = 1\n", "n.s.k", {"a", true}, "[t]\nb = 1\n\n[n.s]\nk = \"a\"\n"},
      {kToml, "[t]\na.b = 1\n", "t.a.c", {"4"}, "[t]\na.b = 1\na.c = 4\n"},
      {kToml, "[x.y]\nz = 1\n", "x.n", {"4"}, "[x.y]\nz = 1\n\n[x]\nn = 4\n"},
      {kToml, "i = {x = 1}\n", "i.w", {"4"}, "i = {x = 1, w = 4}\n"},
      {kToml, "", "a b", {"4"}, "\"a b\" = 4\n"},
      {kJson, "{\n  \"a\": 1\n}\n", "b", {"true"}, "{\n  \"a\": 1,\n  \"b\": true\n}\n"},
      {kJson, "{\"a\": {\"b\": 1}, \"c\": 2}", "a.n.m", {"4"}, "{\"a\": {\"b\": 1,\"n\": {\"m\": 4}}, \"c\": 2}"},
      {kJson, "{}", "a.b", {"x", true}, "{\"a\": {\"b\": \"x\"}}"},
      {kJson, "{\n  \"a\": 1,\n}\n", "b", {"4"}, "{\n  \"a\": 1,\n  \"b\": 4,\n}\n"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(add(c.format, c.before, c.key, c.value), c.after) << c.key << " of " << c.before;
}

TEST(InPlaceEdit, RefusesInOneLine) {
  const std::vector<Case> cases = {
      {kYaml,
       "t:\n  batch: 8\n",
       "t.bacth",
       {"4"},
       "there is no 'bacth' in 't'; did you mean 'batch'? '+t.bacth' would add it"},
      {kYaml, "t:\n  batch: 8\n", "quite.other", {"4"}, "there is no 'quite'; write '+quite.other' to add it"},
      {kYaml, "l: [1, 2]\n", "l.2", {"4"}, "there is no '2' in 'l'; it is a list of 2: write its positions from 0"},
      {kYaml, "t:\n  b: 8\n", "t", {"4"}, "'t' is a table, no single value; name a key in it"},
      {kYaml, "l:\n  - 1\n", "l", {"4"}, "'l' is a list, no single value; name one in it: 'l.0'"},
      {kYaml, "a: 1\na: 2\n", "a", {"4"}, "'a' is there twice; remove one of them"},
      {kYaml, "a: [1, 2\n", "a", {"4"}, "invalid YAML at line 2: end of sequence flow not found"},
      {kYaml, "a: b: c\n", "a", {"4"}, "invalid YAML at line 1: illegal map value; fix that line"},
      {kYaml, "just text\n", "a", {"4"}, "not YAML with keys: it is a single text"},
      {kYaml, "a: 1\n---\na: 2\n", "a", {"4"}, "YAML of several documents; name a file of one"},
      {kYaml, "a: 1\nb: [&x 1, *x]\n", "b.1", {"4"}, "'b.1' cannot be replaced in place; "},
      {kYaml, "a: &a [*a]\n", "a.0.0.0", {"4"}, ""},
      {kToml, "a = \n", "a", {"4"}, "invalid TOML at line 1: "},
      {kToml, "a = 1\na = 2\n", "a", {"4"}, "invalid TOML at line 2: "},
      {kToml, "[t]\nb = 1\n", "t", {"4"}, "'t' is a table, no single value"},
      {kJson, "{\"a\": 1", "a", {"4"}, "not JSON at line 1"},
      {kJson, "[1, 2]", "5", {"4"}, "there is no '5'"},
      {kJson, "3", "a", {"4"}, "it is not a JSON object"},
      {kJson, "{\"a\": 1, \"a\": 2}", "a", {"4"}, ""},
  };
  for (const Case& c : cases) {
    const std::string error = user_error_of([&] { set(c.format, c.before, c.key, c.value); });
    EXPECT_NE(error, "no error") << c.before;
    EXPECT_EQ(error.rfind(c.after, 0), 0U) << c.before << "\n  gives " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_NE(
      user_error_of([] { add(kYaml, "a: 1\n", "a.b", {"4"}); }).find("'a' is not a table: no key can be added to it"),
      std::string::npos);
  EXPECT_NE(user_error_of([] { add(kJson, "{\"a\": [1]}", "a.b", {"4"}); }).find("'a' is not a table"),
            std::string::npos);
}

TEST(InPlaceEdit, KnowsTheFormatByTheName) {
  EXPECT_EQ(runner::file_format_of("conf/a.yaml"), kYaml);
  EXPECT_EQ(runner::file_format_of("a.YML"), kYaml);
  EXPECT_EQ(runner::file_format_of("a.b.toml"), kToml);
  EXPECT_EQ(runner::file_format_of("/x/a.json"), kJson);
  EXPECT_EQ(runner::file_format_of("a.ini"), std::nullopt);
  EXPECT_EQ(runner::file_format_of("yaml"), std::nullopt);
}

// Random documents with the known place of each value.
struct Place {
  std::string key;
  std::size_t begin;
  std::size_t end;
};

class Writer {
 public:
  explicit Writer(unsigned seed) : draw_(seed) { end_ = pick({"\n", "\r\n"}); }

  std::size_t below(std::size_t count) { return draw_() % count; }
  std::string pick(const std::vector<std::string>& words) { return words[below(words.size())]; }

  void value(const std::string& key, const std::string& token) {
    places.push_back({key, text.size(), text.size() + token.size()});
    text += token;
  }

  std::string text;
  std::vector<Place> places;

 protected:
  void remark() {
    if (below(4) == 0) text += pick({"  # a: 1", " # {x}", "  # \xc3\xa9 'q\""});
  }
  std::string end_;

 private:
  std::mt19937 draw_;
};

class YamlWriter : public Writer {
 public:
  explicit YamlWriter(unsigned seed) : Writer(seed) {
    if (below(5) == 0) text += "---" + end_;
    map("", 0, 0);
  }

 private:
  std::string scalar() {
    return pick({"4",
                 "3.5",
                 "1e-4",
                 "true",
                 "bf16",
                 "two words",
                 "'single'",
                 "\"double \\\" \xc3\xa9\"",
                 "~",
                 "null",
                 "\xc3\xa9t\xc3\xa9",
                 "\"\"",
                 "''",
                 "http://x/y",
                 "-1",
                 "a#b",
                 "\"auto\"",
                 "'it''s'",
                 "/a/b",
                 "2024-01-01"});
  }
  void map(const std::string& prefix, std::size_t depth, std::size_t level) {
    for (std::size_t i = 0; i <= below(4); ++i) {
      if (below(5) == 0) text += pick({end_, "# c: 1" + end_, std::string(depth, ' ') + "# d" + end_});
      member(prefix, fmt::format("k{}", i), depth, level, true);
    }
  }
  void member(const std::string& prefix, const std::string& name, std::size_t depth, std::size_t level, bool indent) {
    const std::string key = prefix + name;
    if (indent) text += std::string(depth, ' ');
    text += pick({name, name, "\"" + name + "\"", "'" + name + "'"}) + ":";
    switch (below(level > 2 ? 2 : 5)) {
      case 0:
      case 1:
        if (below(8) == 0) {
          places.push_back({key, text.size(), text.size()});
          remark();
        } else {
          text += pick({" ", "  ", " ", fmt::format(" &{}{} ", name, text.size())});
          value(key, scalar());
          remark();
        }
        text += end_;
        break;
      case 2:
        remark();
        text += end_;
        map(key + ".", depth + 2, level + 1);
        break;
      case 3:
        text += " ";
        flow(key + ".", level + 1);
        text += end_;
        break;
      default:
        remark();
        text += end_;
        list(key + ".", depth + 2, level + 1);
    }
  }
  void list(const std::string& prefix, std::size_t depth, std::size_t level) {
    for (std::size_t i = 0; i <= below(3); ++i) {
      text += std::string(depth, ' ') + "- ";
      if (below(3) > 0) {
        value(fmt::format("{}{}", prefix, i), scalar());
        remark();
        text += end_;
      } else {
        member(fmt::format("{}{}.", prefix, i), "k0", depth + 2, level, false);
        member(fmt::format("{}{}.", prefix, i), "k1", depth + 2, level, true);
      }
    }
  }
  void flow(const std::string& prefix, std::size_t level) {
    const bool is_map = below(2) == 0;
    text += is_map ? "{" : "[";
    for (std::size_t i = 0; i <= below(3); ++i) {
      if (i > 0) text += pick({", ", ",  "});
      const std::string name = is_map ? fmt::format("f{}", i) : fmt::format("{}", i);
      if (is_map) text += name + ": ";
      if (level < 3 && below(4) == 0) {
        flow(prefix + name + ".", level + 1);
      } else {
        value(prefix + name, pick({"1", "x y", "'q, }'", "\"[\"", "~", "-2.5", "false"}));
      }
    }
    text += is_map ? "}" : "]";
  }
};

class TomlWriter : public Writer {
 public:
  explicit TomlWriter(unsigned seed) : Writer(seed) {
    members("");
    for (std::size_t i = 0; i <= below(3); ++i) {
      text += pick({end_, "", "# s" + end_}) + fmt::format("[s{}]", i);
      remark();
      text += end_;
      members(fmt::format("s{}.", i));
      if (below(2) == 0) {
        text += fmt::format("[s{}.\"d\"]{}", i, end_);
        members(fmt::format("s{}.d.", i));
      }
    }
    for (std::size_t i = 0; i < below(3); ++i) {
      text += "[[list]]" + end_;
      members(fmt::format("list.{}.", i));
    }
  }

 private:
  std::string scalar() {
    return pick({"4", "3.5", "1e-4", "true", "\"bf16\"", "'lit \\ '", "\"\xc3\xa9 \\\" #\"", "0x1F", "1_000", "\"\"",
                 "1979-05-27", "\"auto\"", "\"\"\"two" + end_ + "lines\"\"\"", "-inf", "07:32:00"});
  }
  void members(const std::string& prefix) {
    for (std::size_t i = 0; i <= below(4); ++i) {
      if (below(4) == 0) text += pick({end_, "# k1 = 3" + end_});
      const std::string name = pick({fmt::format("k{}", i), fmt::format("k{}.e", i)});
      text += name + pick({" = ", "=", "  =  "});
      switch (below(4)) {
        case 0:
          text += "[";
          value(prefix + name + ".0", "1");
          text += pick({", ", "," + end_ + "  "});
          value(prefix + name + ".1", "22");
          text += "]";
          break;
        case 1:
          text += "{ x = ";
          value(prefix + name + ".x", pick({"1", "'a'", "false"}));
          text += ", y.z = ";
          value(prefix + name + ".y.z", "\"}\"");
          text += " }";
          break;
        default:
          value(prefix + name, scalar());
      }
      remark();
      text += end_;
    }
  }
};

class JsonWriter : public Writer {
 public:
  explicit JsonWriter(unsigned seed) : Writer(seed) { object("", 0); }

 private:
  std::string gap() { return pick({"", " ", end_ + "  ", end_ + "\t", " // a \"c\": {" + end_}); }
  void any(const std::string& key, int level) {
    if (level < 3 && below(4) == 0) return object(key + ".", level + 1);
    if (level < 3 && below(5) == 0) {
      text += "[";
      for (std::size_t i = 0; i <= below(3); ++i) {
        if (i > 0) text += ",";
        text += gap();
        any(fmt::format("{}.{}", key, i), level + 1);
      }
      text += gap() + "]";
      return;
    }
    value(key, pick({"4", "3.5e-2", "true", "null", "\"bf16\"", "\"\xc3\xa9 \\\" } ,\"", "\"auto\"", "\"\\u00e9//\"",
                     "-1", "\"8\""}));
  }
  void object(const std::string& prefix, int level) {
    text += "{";
    for (std::size_t i = 0; i <= below(4); ++i) {
      if (i > 0) text += ",";
      text += gap() + fmt::format("\"k{}\"", i) + pick({"", " "}) + ":" + pick({"", " "});
      any(fmt::format("{}k{}", prefix, i), level);
    }
    text += gap() + "}";
  }
};

const std::vector<NewValue>& new_values() {
  static const std::vector<NewValue> kValues = {
      {"7"},         {"0.25"},  {"1e-05"}, {"true"}, {"fp16"}, {"yes", true}, {"it's \"x\": \xc3\xa9", true},
      {"1.5", true}, {"", true}};
  return kValues;
}

bool is_same_scalar(const NewValue& wanted, const std::string& found) {
  if (wanted.text == found) return true;
  const space::Value a = space::value_from_text(wanted.text);
  const space::Value b = space::value_from_text(found);
  return !wanted.is_text && space::is_number(a) && space::is_number(b) && space::same_value(a, b);
}

// Checks that the text at the place was replaced and that all other bytes are unchanged. Returns the new text.
std::string replaced_token(const Writer& document, const Place& place, const std::string& changed) {
  const std::string before = document.text.substr(0, place.begin);
  const std::string behind = document.text.substr(place.end);
  EXPECT_EQ(changed.substr(0, place.begin), before);
  EXPECT_GE(changed.size(), before.size() + behind.size());
  EXPECT_EQ(changed.substr(changed.size() - behind.size()), behind);
  return changed.substr(before.size(), changed.size() - before.size() - behind.size());
}

// A second, slow reader of a document: each value by its key.
using Flat = std::map<std::string, std::pair<std::string, std::string>>;

void flatten(const YAML::Node& node, const std::string& key, Flat& flat) {
  flat[key] = {fmt::format("{} {}", static_cast<int>(node.Type()), node.IsScalar() ? "" : node.Tag()),
               node.IsScalar() ? node.Scalar() : ""};
  int position = 0;
  if (node.IsSequence()) {
    for (const auto& item : node) flatten(item, fmt::format("{}.{}", key, position++), flat);
  }
  if (node.IsMap()) {
    for (const auto& entry : node) flatten(entry.second, key + "." + entry.first.Scalar(), flat);
  }
}

TEST(InPlaceEdit, OfRandomYamlChangesThatValueAlone) {
  int replaced = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const YamlWriter document(seed);
    Flat before;
    flatten(YAML::Load(document.text), "", before);
    for (const Place& place : document.places) {
      const NewValue& value = new_values()[(seed + place.begin) % new_values().size()];
      SCOPED_TRACE(fmt::format("seed {}, {} = {}\n{}", seed, place.key, value.text, document.text));
      const std::string changed = set(kYaml, document.text, place.key, value);
      const std::string token = replaced_token(document, place, changed);
      Flat after;
      flatten(YAML::Load(changed), "", after);
      ASSERT_TRUE(after.contains("." + place.key));
      EXPECT_TRUE(is_same_scalar(value, after.at("." + place.key).second)) << token;
      const char quote = place.begin < place.end ? document.text[place.begin] : ' ';
      const bool was_auto = document.text.substr(place.begin, place.end - place.begin) == "\"auto\"";
      const bool is_kept = (quote == '\'' || quote == '"') && !was_auto;
      EXPECT_TRUE(!is_kept || token.front() == quote) << token;
      Flat expected = before;
      expected["." + place.key] = after.at("." + place.key);
      EXPECT_EQ(after, expected);
      ++replaced;
    }
  }
  EXPECT_GE(replaced, 500);
}

TEST(InPlaceEdit, OfRandomJsonChangesThatValueAlone) {
  int replaced = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const JsonWriter document(seed);
    for (const Place& place : document.places) {
      const NewValue& value = new_values()[(seed + place.begin) % new_values().size()];
      SCOPED_TRACE(fmt::format("seed {}, {} = {}\n{}", seed, place.key, value.text, document.text));
      const std::string changed = set(kJson, document.text, place.key, value);
      const Json token = Json::parse(replaced_token(document, place, changed));
      EXPECT_TRUE(is_same_scalar(value, token.is_string() ? token.get<std::string>() : token.dump()));
      EXPECT_TRUE(!value.is_text || token.is_string());
      std::string pointer = "/" + place.key;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      Json expected = parse_json(document.text, "before");
      expected[Json::json_pointer(pointer)] = token;
      EXPECT_EQ(parse_json(changed, "after"), expected);
      ++replaced;
    }
  }
  EXPECT_GE(replaced, 500);
}

TEST(InPlaceEdit, OfRandomTomlChangesThatValueAlone) {
  int replaced = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const TomlWriter document(seed);
    for (const Place& place : document.places) {
      const NewValue& value = new_values()[(seed + place.begin) % new_values().size()];
      SCOPED_TRACE(fmt::format("seed {}, {} = {}\n{}", seed, place.key, value.text, document.text));
      const std::string changed = set(kToml, document.text, place.key, value);
      const std::string token = replaced_token(document, place, changed);
      const bool is_quoted = token.front() == '"' || token.front() == '\'';
      EXPECT_TRUE(is_quoted || (!value.is_text && is_same_scalar(value, token))) << token;
      // After restoring the old value, everything is as before.
      const std::string old = document.text.substr(place.begin, place.end - place.begin);
      std::string back = changed;
      back.replace(place.begin, token.size(), old);
      EXPECT_EQ(back, document.text);
      ++replaced;
    }
  }
  EXPECT_GE(replaced, 500);
}

// Everything that was added is there, and nothing else has changed.
TEST(InPlaceEdit, AddsToRandomDocuments) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    for (const std::string key : {"new", "new.deeper.key", "k0.new", "s0.new.key"}) {
      const auto check = [&](FileFormat format, const std::string& text) {
        SCOPED_TRACE(fmt::format("seed {}, +{}\n{}", seed, key, text));
        std::string changed;
        const std::string error = user_error_of([&] { changed = add(format, text, key, {"7"}); });
        if (error != "no error") {
          EXPECT_NE(error.find("is not a table: no key can be added to it"), std::string::npos) << error;
          return;
        }
        EXPECT_EQ(set(format, changed, key, {"7"}), changed) << "it is there";
        EXPECT_GT(changed.size(), text.size());
      };
      check(kYaml, YamlWriter(seed).text);
      check(kToml, TomlWriter(seed).text);
      check(kJson, JsonWriter(seed).text);
    }
  }
}

}  // namespace krigtune::in_place_edit_test
