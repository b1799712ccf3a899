#include "trial/placeholders.h"

#include <gtest/gtest.h>

#include <random>

#include "core/json.h"
#include "space/spaces.h"
#include "user_error.h"

namespace krigtune::placeholders_test {

using space::Kind;

const trial::KnownNames& names() {
  static const trial::KnownNames kNames = {
      {"micro_batch", Kind::kNumber}, {"bucket", Kind::kNumber},  {"dp", Kind::kNumber}, {"lr", Kind::kNumber},
      {"overlap", Kind::kCondition},  {"precision", Kind::kText}, {"dir", Kind::kText},  {"x.y", Kind::kNumber}};
  return kNames;
}

const trial::NamedValues& values() {
  static const trial::NamedValues kValues = {{"micro_batch", std::int64_t{4}},
                                             {"bucket", std::int64_t{500000000}},
                                             {"dp", std::int64_t{8}},
                                             {"lr", 2.5e-5},
                                             {"overlap", true},
                                             {"precision", std::string("bf16")},
                                             {"dir", std::string("/tmp/{x}")},
                                             {"x.y", 0.5}};
  return kValues;
}

std::string filled(const std::string& text) {
  return trial::PlaceholderText(text, names()).filled(trial::lookup_in(values()));
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { return filled(text); });
}

TEST(Placeholders, AreNamesExpressionsAndFormats) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"plain", "plain"},
      {"--mbs={micro_batch}", "--mbs=4"},
      {"{micro_batch}{dp}", "48"},
      {"{bucket}", "500000000"},
      {"{bucket/1e6:.0f}", "500"},
      {"{bucket / 1e6:.2f} MB", "500.00 MB"},
      {"{bucket/1048576:.3g}", "477"},
      {"{bucket:e}", "5.000000e+08"},
      {"{micro_batch*dp}", "32"},
      {"{micro_batch*dp:06d}", "000032"},
      {"{micro_batch:>4}|{micro_batch:<4}|", "   4|4   |"},
      {"{micro_batch:.1f}", "4.0"},
      {"{micro_batch/8}", "0.5"},
      {"{min(micro_batch, 3)}", "3"},
      {"{(micro_batch + 1) * 2}", "10"},
      {"{-micro_batch}", "-4"},
      {"{lr}", "2.5e-05"},
      {"{lr:.1e}", "2.5e-05"},
      {"{overlap}", "true"},
      {"{overlap:d}", "1"},
      {"{!overlap}", "false"},
      {"{overlap && dp > 4}", "true"},
      {"{precision}", "bf16"},
      {"{precision:>6}", "  bf16"},
      {"{precision == 'bf16'}", "true"},
      {"{precision == \"fp16\"}", "false"},
      {"{x.y}", "0.5"},
      {"{dir}/out", "/tmp/{x}/out"},  // placeholders within a value are not replaced
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(filled(text), expected) << text;
}

TEST(Placeholders, OtherBracesStandForThemselves) {
  for (const std::string text : {"{",
                                 "}",
                                 "{}",
                                 "}{",
                                 "{ }",
                                 "{ x }",
                                 "{ micro_batch }",
                                 "{micro_batch }",
                                 "a{3}",
                                 "[0-9]{2,4}",
                                 "{print $1}",
                                 "{sum += $2} END {n++; print sum / n}",
                                 R"({"a": 1})",
                                 R"({"a": {"b": [1, {"c": 2}]}})",
                                 R"({"micro_batch": 4})",
                                 R"({"a": {}})",
                                 "{layers: 12, heads: 8}",
                                 "{micro_batch: 4}",
                                 "{'a'}",
                                 "{1 + 2}",
                                 "{% for x in dp %}",
                                 "{\n  micro_batch\n}",
                                 "{micro_batch",
                                 "micro_batch}",
                                 "{a, b}",
                                 "{a;b}",
                                 "if (x) { y = {1, 2}; }",
                                 "${1}",
                                 "{\"a\": \"}\"}"}) {
    EXPECT_EQ(filled(text), text);
  }
  EXPECT_EQ(filled(R"({"a": {micro_batch}})"), R"({"a": 4})");
  EXPECT_EQ(filled(R"({"a": {"b": {micro_batch}}, "c": "{precision}"})"), R"({"a": {"b": 4}, "c": "bf16"})");
}

TEST(Placeholders, TwoBracesAreOne) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{", "{"},
      {"}}", "}"},
      {"{{}}", "{}"},
      {"{{micro_batch}}", "{micro_batch}"},
      {"{{{micro_batch}}}", "{4}"},
      {"{{config}", "{config}"},
      {"{{{{", "{{"},
      {"}}}}", "}}"},
      {"${{HOME}}", "${HOME}"},
      {R"({{"a": {{"b": 1}}}})", R"({"a": {"b": 1}})"},
      {R"({{"a": {"b": 1}}})", R"({"a": {"b": 1}})"},
      {"a{ {{x}} }", "a{ {x} }"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(filled(text), expected) << text;
}

// Any text with doubled braces gives the text itself.
TEST(Placeholders, AreEscapedOneWay) {
  std::mt19937 draw(20241124);
  const std::string alphabet = "{}{}ab: \n\"'1$dp";
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t length = draw() % 14; text.size() < length;) text += alphabet[draw() % alphabet.size()];
    std::string escaped;
    for (const char c : text) escaped += c == '{' ? "{{" : c == '}' ? "}}" : std::string(1, c);
    EXPECT_EQ(filled(escaped), text) << escaped;
  }
}

// JSON that contains no known name as a bare word needs no escapes.
TEST(Placeholders, AnyJsonIsItself) {
  std::mt19937 draw(7);
  const std::function<Json(int)> any = [&](int depth) -> Json {
    switch (draw() % (depth > 3 ? 3 : 5)) {
      case 0:
        return draw() % 100;
      case 1:
        return "dp";
      case 2:
        return nullptr;
      case 3: {
        Json list = Json::array();
        for (std::size_t i = draw() % 3; i > 0; --i) list.push_back(any(depth + 1));
        return list;
      }
      default: {
        Json object = Json::object();
        for (std::size_t i = draw() % 4; i > 0; --i)
          object[std::string(1, static_cast<char>('a' + i))] = any(depth + 1);
        return object;
      }
    }
  };
  for (int i = 0; i < 1000; ++i) {
    const Json json = any(0);
    for (const int indent : {-1, 2}) EXPECT_EQ(filled(json.dump(indent)), json.dump(indent));
  }
}

TEST(Placeholders, ThatAreWrongNameThePlaceAndTheMend) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--x={micro_batc}",
       "'{micro_batc}' is not a placeholder; did you mean 'micro_batch'? A brace of its own is written '{{'"},
      {"{print}",
       "'{print}' is not a placeholder; known: micro_batch, bucket, dp, lr, overlap, precision, dir, x.y. A brace of "
       "its own is written '{{'"},
      {"a\nb {confg}", "line 2: '{confg}' is not a placeholder; "},
      {"{micro_batc * 2}",
       "'{micro_batc * 2}': at character 1: unknown name 'micro_batc'; did you mean 'micro_batch'?"},
      {"{bucket / 1e6 *}",
       "'{bucket / 1e6 *}' is not an expression: at character 15: a name, a number or '(' was expected, not the end; "
       "complete the expression"},
      {"{dp and overlap}", "'{dp and overlap}' is not an expression: at character 4: unknown operator 'and'; write &&"},
      {"{dp = 4}", "'{dp = 4}' is not an expression: at character 4: unknown operator '='; write =="},
      {"{precision + 1}", "'{precision + 1}': at character 1: a text cannot be calculated with"},
      {"{precision == 3}", "'{precision == 3}': at character 11: a text is compared with a number"},
      {"{precision:.0f}", "'{precision:.0f}': '.0f' is not a format of a text; leave it out"},
      {"{micro_batch:s}", "'{micro_batch:s}': 's' is not a format of a number; write .0f, .3g, e or d, as in Python"},
      {"{micro_batch:.0q}", "'.0q' is not a format of a number"},
      {"{overlap:.0f}", "'.0f' is not a format of true or false"},
      {"{micro_batch:999999999}", "'999999999' is not a format of a number"},
      {"{micro_batch/8:d}", "'{micro_batch/8:d}' is 0.5, which 'd' cannot write; write .0f, or .3g"},
      {"{micro_batch / (dp - 8)}", "'{micro_batch / (dp - 8)}' has no value; it divides by zero, or is out of range"},
      {"{dp % 0:.0f}", "'{dp % 0:.0f}' has no value"},
  };
  for (const auto& [text, part] : cases) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << text << "\n  gives " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Placeholders, TellWhatTheyUse) {
  const trial::PlaceholderText text("{dp}/{micro_batch * dp:.0f} {{lr}} {lr}", names());
  EXPECT_EQ(text.names(), (std::vector<std::string>{"dp", "micro_batch", "lr"}));
  EXPECT_FALSE(text.is_plain());
  EXPECT_TRUE(trial::PlaceholderText("{{dp}} { x }", names()).is_plain());
  EXPECT_EQ(trial::PlaceholderText("{precision}", names()).kind(), Kind::kText);
  EXPECT_EQ(trial::PlaceholderText("{overlap}", names()).kind(), Kind::kCondition);
  EXPECT_EQ(trial::PlaceholderText("{precision}-", names()).kind(), Kind::kAny);
}

space::Space job_space() {
  space::JobFacts facts{.ranks = 8, .train_batch_size = 64, .numbers = {{"nodes", 2.0}, {"layers", 24.0}}};
  facts.fixed = {{"tensor_parallel", std::int64_t{2}}};
  return space_from(R"({"micro_batch": [1, 2, 4], "activation_checkpointing": ["none", "full"],
                        "depth": {"values": [3, 5], "when": "micro_batch > 1"}, "lr": {"min": 0.1, "max": 1.0, "type": "real"}})",
                    facts);
}

TEST(JobNames, AreParametersFactsAndTheTrials) {
  const trial::JobNames names(job_space());
  space::Configuration configuration{{"micro_batch", std::int64_t{2}},
                                     {"activation_checkpointing", std::string("full")},
                                     {"depth", std::int64_t{5}},
                                     {"lr", 0.25}};
  const trial::NamedValues values =
      names.values(configuration, {.dir = "/d", .config = "/d/c", .result = "/d/r", .trial = 7, .port = 4242});
  const auto value = [&](const std::string& text) {
    return trial::PlaceholderText(text, names.known()).filled(trial::lookup_in(values));
  };
  EXPECT_EQ(value("{micro_batch} {activation_checkpointing} {depth} {lr} {tensor_parallel}"), "2 full 5 0.25 2");
  EXPECT_EQ(value("{dp} {gradient_accumulation_steps} {ranks} {nodes} {layers} {train_batch_size}"), "4 8 8 2 24 64");
  EXPECT_EQ(value("{dir} {config} {result} {trial:03d} {port + 1} {slot}"), "/d /d/c /d/r 007 4243 0");
  EXPECT_EQ(value("{pipeline_parallel}"), "1") << "a well-known parameter that the session does not have";
}

TEST(JobNames, WhatDoesNotExistHasItsFirstValue) {
  const trial::JobNames names(job_space());
  const trial::NamedValues values = names.values({{"micro_batch", std::int64_t{1}}}, {});
  EXPECT_EQ(values.at("depth"), space::Value(std::int64_t{3}));
  EXPECT_EQ(values.at("lr"), space::Value(0.1));
}

TEST(JobNames, EveryNameHasAValueOfItsKind) {
  const space::Space space = job_space();
  const trial::JobNames names(space);
  Rng rng(3, 0);
  for (int i = 0; i < 50; ++i) {
    const trial::NamedValues values = names.values(space.sample(rng), {});
    for (const trial::KnownName& name : names.known()) {
      ASSERT_TRUE(values.contains(name.name)) << name.name;
      const space::Value& value = values.at(name.name);
      const Kind kind = std::holds_alternative<std::string>(value) ? Kind::kText
                        : std::holds_alternative<bool>(value)      ? Kind::kCondition
                                                                   : Kind::kNumber;
      EXPECT_EQ(kind, name.kind) << name.name;
    }
  }
}

TEST(FreePort, IsOneThatMayBeUsed) {
  const std::int64_t port = trial::free_port();
  EXPECT_GE(port, 1024);
  EXPECT_LE(port, 65535);
}

}  // namespace krigtune::placeholders_test
