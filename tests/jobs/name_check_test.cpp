// Recipes compared with an installed framework: a small one, made here, with a source of each kind.
#include "jobs/recipe/name_check.h"

#include <gtest/gtest.h>

#include "core/clock.h"
#include "core/error.h"
#include "python_test.h"
#include "scoped_variable.h"

namespace krigtune::jobs::name_check_test {
namespace {

constexpr const char* kArguments = R"(
import argparse, dataclasses, typing

print("a framework says what it likes when it is imported: {}")

def add_flags(parser):
    parser.add_argument("--micro-batch", "-m", type=int)
    parser.add_argument("--recompute", action=argparse.BooleanOptionalAction)
    parser.add_argument("--warp-factor", type=float)

@dataclasses.dataclass
class Parallel:
    tensor: int = 1
    ring: typing.Optional[bool] = None

@dataclasses.dataclass
class Config:
    parallel: Parallel = dataclasses.field(default_factory=Parallel)
    maybe: typing.Optional[Parallel] = None
    extra: typing.Union[dict, str, None] = None
    hidden: int = dataclasses.field(default=0, init=False)

class Field:
    def __init__(self, annotation, alias=None):
        self.annotation, self.alias = annotation, alias

class Adapter:  # as pydantic's models
    model_fields = {"rank": Field(int, alias="lora-r")}

def make_config():
    return Config()
)";

// Of a program that cannot be imported here.
constexpr const char* kProgram = R"(
import a_module_that_nobody_has

parser = argparse.ArgumentParser()
parser.add_argument("positional")
parser.add_argument("--seed", type=int)
print(cfg.batch, cfg.get("packed", False))
)";

class NameChecks : public PythonTest {
 protected:
  NameChecks() : PythonTest("argparse", "install python3"), path_("PYTHONPATH", directory_.path().string()) {
    std::filesystem::create_directories(directory_ / "made_up/conf");
    std::filesystem::create_directories(directory_ / "made_up-1.2.dist-info");
    directory_.write("made_up-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: made-up\nVersion: 1.2\n");
    directory_.write("made_up/__init__.py", "");
    directory_.write("made_up/arguments.py", kArguments);
    directory_.write("made_up/train.py", kProgram);
    directory_.write("made_up/hang.py", "import time\ntime.sleep(600)\n");
  }

  FrameworkNames ask(const std::vector<NameSource>& sources, double timeout_s = 60.0,
                     const std::string& python = program()) const {
    InstalledFramework framework;
    framework.packages = {{"made-up", "1.1"}};
    framework.sources = sources;
    return ask_framework(framework, python, timeout_s, SystemClock());
  }

  // Returns the error without its hint.
  std::string failure(const std::string& python, const std::vector<NameSource>& sources = {},
                      double timeout_s = 60.0) const {
    try {
      ask(sources, timeout_s, python);
    } catch (const UserError& error) {
      const std::string text = error.what();
      return text.substr(0, text.find("; "));
    }
    return "it did not fail";
  }

  ScopedVariable path_;
};

using Spellings = std::vector<std::vector<std::string>>;

NameSource source(const std::string& kind, const std::string& module, const std::string& object) {
  return {kind, module, object, {}, false};
}

TEST_F(NameChecks, FlagsOfAParserHaveAllTheirSpellings) {
  const FrameworkNames names = ask({source("argparse", "made_up.arguments", "add_flags")});
  EXPECT_EQ(names.packages, (std::vector<std::pair<std::string, std::string>>{{"made-up", "1.2"}}));
  EXPECT_EQ(names.names, (Spellings{{"--micro-batch", "-m"}, {"--recompute", "--no-recompute"}, {"--warp-factor"}}));
  EXPECT_TRUE(names.troubles.empty());
}

TEST_F(NameChecks, FieldsOfClassesWithinClassesAreDotted) {
  const FrameworkNames names = ask({source("fields", "made_up.arguments", "Config")});
  EXPECT_EQ(names.names,
            (Spellings{{"parallel.tensor"}, {"parallel.ring"}, {"maybe.tensor"}, {"maybe.ring"}, {"extra"}}));
  EXPECT_EQ(names.open, std::vector<std::string>{"extra"});
  EXPECT_EQ(ask({source("fields", "made_up.arguments", "Adapter")}).names, (Spellings{{"rank", "lora-r"}}));
}

TEST_F(NameChecks, ValuesHaveTheFieldsThatTheyHold) {
  NameSource made = source("values", "made_up.arguments", "make_config");
  made.without = {"extra"};
  EXPECT_EQ(ask({made}).names, (Spellings{{"parallel.tensor"}, {"parallel.ring"}, {"maybe"}}));
}

TEST_F(NameChecks, TheTextOfAProgramIsReadAndNotRun) {
  const FrameworkNames names = ask({source("source", "made_up", "tra*.py")});
  EXPECT_EQ(names.names, (Spellings{{"--seed"}, {"batch"}, {"packed"}})) << testing::PrintToString(names.troubles);
}

TEST_F(NameChecks, AnAnswerIsTheSameAfterItWasWritten) {
  const FrameworkNames names =
      ask({source("fields", "made_up.arguments", "Config"), source("argparse", "made_up.nowhere", "parser")});
  EXPECT_EQ(to_json(framework_names_from(to_json(names), "")), to_json(names));
}

TEST_F(NameChecks, AFrameworkThatIsNotThereHasNoPackages) {
  InstalledFramework framework;
  framework.packages = {{"nobody-has-this", "1"}};
  framework.sources = {source("argparse", "nobody_has_this", "parser")};
  EXPECT_TRUE(ask_framework(framework, program(), 60.0, SystemClock()).packages.empty());
}

TEST_F(NameChecks, EverySourceThatCannotBeAskedIsOneLine) {
  const FrameworkNames names =
      ask({source("argparse", "made_up.nowhere", "parser"), source("argparse", "made_up.arguments", "Nothing"),
           source("argparse", "made_up.arguments", "make_config"), source("source", "made_up", "nothing*.py"),
           source("fields", "made_up.train", "Config")});
  EXPECT_EQ(names.troubles,
            (std::vector<std::string>{
                "made_up.nowhere parser: ModuleNotFoundError: No module named 'made_up.nowhere'",
                "made_up.arguments Nothing: AttributeError: module 'made_up.arguments' has no attribute 'Nothing'",
                "made_up.arguments make_config: TypeError: it gives a Config and no ArgumentParser",
                "made_up nothing*.py: FileNotFoundError: no file nothing*.py in made_up",
                "made_up.train Config: ModuleNotFoundError: No module named 'a_module_that_nobody_has'"}));
}

TEST_F(NameChecks, APythonThatDoesNotAnswerIsOneLine) {
  const std::string prefix = "--check: '";
  const std::string silent = directory_.write_program("silent", "exit 0\n").string();
  EXPECT_EQ(failure(silent), prefix + silent + "' gave no answer");
  const std::string garbage = directory_.write_program("garbage", "echo '[1, 2' >\"$4\"\n").string();
  EXPECT_EQ(failure(garbage), prefix + garbage + "' gave no sensible answer");
  const std::string wrong = directory_.write_program("wrong", "echo '{\"packages\": 3}' >\"$4\"\n").string();
  EXPECT_NE(failure(wrong).find("packages"), std::string::npos) << failure(wrong);
  const std::string broken = directory_.write_program("broken", "echo first >&2; echo last >&2; exit 3\n").string();
  EXPECT_EQ(failure(broken), prefix + broken + "' ended with exit code 3: last");
  EXPECT_EQ(failure("/nowhere/python"), "--check: there is no program '/nowhere/python'");
}

TEST_F(NameChecks, AFrameworkThatHangsIsEnded) {
  EXPECT_EQ(failure(program(), {source("fields", "made_up.hang", "Config")}, 1.0),
            "--check: '" + program() + "' gave no answer within 1 s");
}

Recipe made_up_recipe() {
  return read_recipe(Json::parse(R"({
    "name": "made-up", "versions": "made-up 1.0 and 1.1",
    "recognise": [{"scripts": ["made_up.py"], "without": ["--of-another-framework"]}],
    "parameters": {
      "micro_batch": {"flag": "--micro-batch"},
      "tensor_parallel": {"flag": "--parallel.tensor"},
      "activation_checkpointing": {"words": {"none": ["--no-recompute"], "full": ["--recompute"]}},
      "zero_stage": {"places": [{"where": {"any_flag": ["--shard 3"]}, "flag": "--stage"}, {"flag": "--stage"}]}
    },
    "remove": ["--old-logger"],
    "ignored": ["warp_*", "extra.depth", "retired"],
    "installed": {"packages": {"made-up": "1.1"}, "elsewhere": {"old_*": "made-up 1.0"}}
  })"),
                     "made-up");
}

TEST_F(NameChecks, TheComparisonNamesWhatIsGoneAndWhatIsNew) {
  const FrameworkNames names =
      ask({source("argparse", "made_up.arguments", "add_flags"), source("fields", "made_up.arguments", "Config")});
  const RecipeCheck check = check_recipe(made_up_recipe(), names);
  EXPECT_EQ(check_text(check), R"(made-up, written for made-up 1.0 and 1.1
Installed: made-up 1.2 (last compared with 1.1)
8 names of the framework: 4 in the recipe, 1 only by a pattern, 3 not; 3 of the recipe gone

Gone: the recipe has them, the framework does not:
  --shard  (parameters/zero_stage)
  --stage  (parameters/zero_stage)
  retired  (ignored)

New: the framework has them, the recipe does not:
  parallel.ring
  maybe.tensor
  maybe.ring
)");
  EXPECT_EQ(check.names.by_pattern, std::vector<std::string>{"--warp-factor"});
  EXPECT_EQ(check.names.elsewhere, std::vector<std::string>{"--old-logger"});
  EXPECT_EQ(to_json(check).at("packages").dump(), R"([{"name":"made-up","installed":"1.2","compared":"1.1"}])");
}

TEST_F(NameChecks, NothingIsGoneWhereASourceCouldNotBeAsked) {
  const FrameworkNames names = ask({source("argparse", "made_up.nowhere", "parser")});
  EXPECT_TRUE(check_names(made_up_recipe(), names).gone.empty());
  EXPECT_NE(check_text(check_recipe(made_up_recipe(), names)).find("Could not be asked:\n  made_up.nowhere parser: "),
            std::string::npos);
}

TEST(NameCheck, NamesOfALauncherAreNotNew) {
  FrameworkNames names;
  names.names = {{"--micro-batch"}};
  names.launcher_names = {{"--stage"}, {"--of-the-launcher"}};
  const NameCheck check = check_names(made_up_recipe(), names);
  EXPECT_EQ(check.sorted, 1U);
  EXPECT_TRUE(check.unsorted.empty());
  for (const GoneName& gone : check.gone) EXPECT_NE(gone.written, "--stage");
}

TEST(NameCheck, ABlockThatCannotBeMeantIsRefused) {
  Json json = Json::parse(
      R"({"name": "mine", "installed": {"sources": [{"kind": "argparser", "module": "m", "object": "o"}]}})");
  try {
    read_recipe(json, "mine.json");
    FAIL() << "an unknown kind was accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("/installed/sources/0/kind"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace krigtune::jobs::name_check_test
