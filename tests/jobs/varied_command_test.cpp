// Where a command's values become placeholders, and that nothing else in it changes.
#include "jobs/session/varied_command.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "trial/temporary_directory.h"
#include "user_error.h"
#include "words.h"

namespace krigtune::varied_command_test {

class VariedCommand : public testing::Test {
 protected:
  VariedCommand() {
    around_.directory = directory_.path();
    around_.variable = [](const std::string& name) {
      return name == "WORKERS" ? std::optional<std::string>("3") : std::nullopt;
    };
  }
  jobs::VariedCommand varied(const std::vector<std::string>& command, const std::vector<std::string>& options) const {
    std::vector<jobs::Vary> all;
    for (const std::string& option : options) all.push_back(jobs::read_vary(option));
    return jobs::vary_command(command, all, around_);
  }
  jobs::VariedCommand varied(const std::string& line, const std::vector<std::string>& options) const {
    return varied(words_of(line), options);
  }
  std::string refusal(const std::string& line, const std::vector<std::string>& options) const {
    return user_error_of([&] { varied(line, options); });
  }

  TemporaryDirectory directory_;
  jobs::CommandSurroundings around_;
};

TEST_F(VariedCommand, TakesTheDefaultOfAScriptForTheBaseline) {
  directory_.write("train.py", R"py(
p.add_argument("--mbs", "-b", type=int, help="as in --lr (not 'this')", default=6)  # default=7
p.add_argument('--learning-rate', default = 3e-4,
               type=float)
p.add_argument("--mode", choices=["a", "b"], default="b"); p.add_argument("--none", default=None)
p.add_argument("--computed", default=int(1e3)); p.add_argument("--twice", default=1); q.add_argument("--twice", default=2)
print("--printed", default=3) if "--tested" in sys.argv else 0
@click.option("--clicked", default=9, show_default=True)
)py");
  const auto own = [&](const std::string& option) {
    const jobs::VariedCommand made = varied("python train.py --out x", {option});
    return made.own.text() + (made.absent.empty() ? "" : " absent");
  };
  EXPECT_EQ(own("b=--mbs:1,2"), "b=6");
  EXPECT_EQ(own("lr=--learning_rate:1e-5..1e-2:log"), "lr=0.0003");
  EXPECT_EQ(own("m=--mode:a,b"), "m=b");
  EXPECT_EQ(own("c=--clicked:1,9"), "c=9");
  for (const char* flag : {"--none", "--computed", "--twice", "--tested", "--absent", "--mode"})
    EXPECT_EQ(own(std::string("v=") + flag + ":1,2"), "v=1 absent") << flag;
  const jobs::VariedCommand made = varied("python train.py --out x", {"b=--mbs:1,2"});
  EXPECT_EQ(join(made.argv, " "), "python train.py --out x --mbs {b}");
  EXPECT_EQ(made.remarks.back(), "the command does not say --mbs: the baseline takes 6, the default in train.py");
}

// It was an internal error.
TEST_F(VariedCommand, RefusesWordsThatNoSessionCanContain) {
  for (const char* line : {"python train.py --mbs 4 --out a\xff", "A=\xff python train.py --mbs 4"})
    EXPECT_NE(refusal(line, {"b=--mbs:1,2"}).find("\\xff' is not UTF-8"), std::string::npos) << line;
}

TEST_F(VariedCommand, KeepsEveryOtherWord) {
  struct Row {
    const char* command;
    const char* option;
    const char* argv;
    const char* own;
  };
  const std::vector<Row> table = {
      {"python train.py --mbs 4 --out x", "b=--mbs:1,2", "python train.py --mbs {b} --out x", "b=4"},
      {"python train.py --mbs=4 --out=x", "b=--mbs:1,2", "python train.py --mbs={b} --out=x", "b=4"},
      {"python train.py --micro_batch 4", "b=--micro-batch:1,2", "python train.py --micro_batch {b}", "b=4"},
      {"python train.py --lr 3e-4", "lr=--lr:1e-5..1e-2:log", "python train.py --lr {lr}", "lr=0.0003"},
      {"python train.py --shift -2", "s=--shift:-1,0", "python train.py --shift {s}", "s=-2"},
      {"python train.py -b4", "b=-b:1,2", "python train.py -b{b}", "b=4"},
      {"python train.py -b 4", "b=-b:1,2", "python train.py -b {b}", "b=4"},
      {"python train.py --mbs 2 --mbs 4", "b=--mbs:1,2", "python train.py --mbs {b} --mbs {b}", "b=4"},
      {"srun -n 2 python train.py -n 8", "n=-n:1,2", "srun -n 2 python train.py -n {n}", "n=8"},
      {"torchrun --nproc_per_node 2 train.py", "n=--nproc_per_node:1,2", "torchrun --nproc_per_node {n} train.py",
       "n=2"},
      {"python train.py", "b=--mbs:1,2", "python train.py --mbs {b}", "b=1"},
      {"python train.py", "b=--mbs=:1,2", "python train.py --mbs={b}", "b=1"},
      {"python train.py train.lr=0.1 x=2", "lr=train.lr=:0.1,0.2", "python train.py train.lr={lr} x=2", "lr=0.1"},
      {"python train.py ++train.lr=0.1", "lr=train.lr=:0.1,0.2", "python train.py ++train.lr={lr}", "lr=0.1"},
      {"python train.py", "lr=train.lr=:0.1,0.2", "python train.py train.lr={lr}", "lr=0.1"},
      {"python train.py --opt adam", "o=--opt:sgd,lion", "python train.py --opt {o}", "o=adam"},
      {"python train.py --cut 2", "o=--cut:none,4", "python train.py --cut {o}", "o=2"},
      {"env MBS=4 bash run.sh", "b=$MBS:1,2", "env MBS={b} bash run.sh", "b=4"},
      {"python train.py --amp true x", "a=--amp:true,false", "python train.py --amp {a} x", "a=true"},
      {"python train.py --amp=false", "a=--amp:true,false", "python train.py --amp={a}", "a=false"},
      {"python train.py --amp False", "a=--amp:true,false", "python train.py --amp {a}", "a=False"},
      {"python train.py amp=1", "a=amp=:true,false", "python train.py amp={a}", "a=1"},
      {R"(python train.py --json {"x":{}} {dir}/out)", "b=--mbs=:1,2",
       R"(python train.py --json {{"x":{{}}}} {dir}/out --mbs={b})", "b=1"},
  };
  for (const Row& row : table) {
    const jobs::VariedCommand made = varied(row.command, {row.option});
    EXPECT_EQ(join(made.argv, " "), row.argv) << row.command;
    EXPECT_EQ(made.own.text(), row.own) << row.command;
    EXPECT_TRUE(made.env.empty()) << row.command;
    EXPECT_TRUE(made.flags.empty()) << row.command;
  }
}

TEST_F(VariedCommand, WritesValuesAsTheCommandWritesThem) {
  EXPECT_EQ(varied("t.py --amp False", {"a=--amp:true,false"}).varied.front().values.dump(), R"(["True","False"])");
  EXPECT_EQ(varied("t.py --amp=yes", {"a=--amp:false,true"}).varied.front().values.dump(), R"(["no","yes"])");
  EXPECT_EQ(varied("t.py amp=1", {"a=amp=:true,false"}).varied.front().values.dump(), "[1,0]");
}

TEST_F(VariedCommand, SwitchesAreThereOrNot) {
  struct Row {
    const char* command;
    const char* argv;
    const char* flags;
    bool own;
  };
  const std::vector<Row> table = {
      {"python t.py --compile x.yaml", "python t.py {flags} x.yaml", R"({"c":{"true":["--compile"],"false":[]}})",
       true},
      {"python t.py x.yaml", "python t.py x.yaml", R"({"c":{"true":["--compile"],"false":[]}})", false},
      {"python t.py --no-compile x", "python t.py {flags} x",
       R"({"c":{"true":["--compile"],"false":["--no-compile"]}})", false},
  };
  for (const Row& row : table) {
    const jobs::VariedCommand made = varied(row.command, {"c=--compile:true,false"});
    EXPECT_EQ(join(made.argv, " "), row.argv);
    EXPECT_EQ(made.flags.dump(), row.flags);
    EXPECT_EQ(made.own.boolean("c", !row.own), row.own) << row.command;
    EXPECT_TRUE(made.absent.empty());
  }
  const auto two = varied("python t.py --a 1 --compile --b --amp", {"c=--amp:true,false", "d=--compile:true,false"});
  EXPECT_EQ(join(two.argv, " "), "python t.py --a 1 {flags} --b");
}

TEST_F(VariedCommand, VariablesAreTheCommandsOwnOrOfTheEnvironment) {
  const auto made = varied("MBS=4 LR=0.1 bash run.sh", {"b=$MBS:1,2", "w=$WORKERS:0..8", "n=$NODES:1,2"});
  EXPECT_EQ(join(made.argv, " "), "bash run.sh");
  const std::vector<std::pair<std::string, std::string>> env = {
      {"MBS", "{b}"}, {"LR", "0.1"}, {"WORKERS", "{w}"}, {"NODES", "{n}"}};
  EXPECT_EQ(made.env, env);
  EXPECT_EQ(made.own.text(), "b=4 w=3 n=1");
  EXPECT_EQ(made.absent, std::vector<std::string>{"n"});
}

TEST_F(VariedCommand, SaysThatTheBaselineIsAGuess) {
  const auto made = varied("python t.py", {"b=--mbs:2,4"});
  ASSERT_EQ(made.remarks.size(), 1U);
  EXPECT_EQ(made.remarks.front(),
            "the command does not say --mbs: the baseline takes 2, the first to try; write your own value to compare "
            "with it");
  EXPECT_EQ(varied("python t.py --batch-size 4", {"b=--batchsize:2,4"}).remarks.front(),
            "the command does not say --batchsize (did you mean --batch-size?): the baseline takes 2, the first to "
            "try; write your own value to compare with it");
}

TEST_F(VariedCommand, KeysOfAFileAreSetInACopy) {
  std::filesystem::create_directories(directory_ / "conf");
  directory_.write("conf/train.yaml", "train:\n  lr: 3e-4  # usual\n  steps: 10\n");
  const auto made = varied("python t.py --config=conf/train.yaml --a 1",
                           {"lr=conf/train.yaml#train.lr:1e-5..1e-2:log", "e=./conf/train.yaml#+train.ema:0.9,0.99"});
  EXPECT_EQ(join(made.argv, " "), "python t.py --config={dir}/train.yaml --a 1");
  const Json wanted = {{(directory_ / "conf/train.yaml").string(), {{"train.lr", "{lr}"}, {"+train.ema", "{e}"}}}};
  EXPECT_EQ(made.set.dump(), wanted.dump());
  EXPECT_EQ(made.own.text(), "lr=0.0003 e=0.9");
  EXPECT_EQ(made.absent, std::vector<std::string>{"e"});
  EXPECT_EQ(join(varied("python t.py conf/train.yaml", {"s=conf/train.yaml#train.steps:1,2"}).argv, " "),
            "python t.py {dir}/train.yaml");
}

TEST_F(VariedCommand, RefusesWhatItCannotChange) {
  directory_.write("a.yaml", "x: 1\n");
  const std::vector<std::tuple<const char*, std::vector<std::string>, const char*>> table = {
      {"python t.py --mbs", {"b=--mbs:1,2"}, "the command's --mbs has no value; for a switch write true,false"},
      {"python t.py --mbs --x 1", {"b=--mbs:1,2"}, "the command's --mbs has no value"},
      {"python t.py --mbs auto", {"b=--mbs:1,2"}, "the command says 'auto', and the values to try are numbers"},
      {"python t.py --amp=maybe", {"b=--amp:true,false"}, "'--amp=maybe' is not a switch"},
      {"python t.py", {"b=--mbs:1,2", "b=--x:1,2"}, "'b' is varied twice"},
      {"python t.py", {"b=--mbs:1,2", "c=--mbs:1,2"}, "--mbs is varied twice, as b and c"},
      {"python t.py b.yaml", {"b=a.yaml#x:1,2"}, "the command does not name 'a.yaml'; did you mean 'b.yaml'?"},
      {"python t.py", {"b=a.yaml#x:1,2"}, "the command does not name 'a.yaml'"},
      {"python t.py a.yaml", {"b=a.yaml#y:1,2"}, "a.yaml has no value 'y'"},
  };
  for (const auto& [line, options, said] : table) {
    const std::string error = refusal(line, options);
    EXPECT_EQ(error.rfind("--vary '" + options.back() + "': ", 0), 0U) << error;
    EXPECT_NE(error.find(said), std::string::npos) << error;
  }
  EXPECT_NE(refusal("A=1 B=2", {"b=$A:1,2"}).find("the command after -- has no program"), std::string::npos);
  const std::vector<std::string> shell = {"bash", "-c", "python t.py --mbs 4"};
  EXPECT_NE(user_error_of([&] { varied(shell, {"b=--mbs:1,2"}); }).find("put that line into a script"),
            std::string::npos);
}

}  // namespace krigtune::varied_command_test
