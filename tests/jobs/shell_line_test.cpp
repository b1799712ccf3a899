// Which lines for a shell become words, and why the others do not. The shell of this machine says itself what the words
// of random lines are.
#include "jobs/command/shell_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "core/text.h"
#include "trial/temporary_directory.h"

namespace krigtune::shell_line_test {
namespace {

using Words = std::vector<std::string>;

std::string plain(const Words& words) {
  const jobs::PlainCommand made = jobs::without_shell(words);
  EXPECT_EQ(made.remark.empty(), made.words == words);
  EXPECT_TRUE(made.why_not.empty() || made.words == words);
  return shell_line(made.words);
}

std::string why_not(const std::string& line) { return jobs::without_shell({"srun", "bash", "-c", line}).why_not; }

TEST(ShellLines, BecomeTheWordsOfOnePlainCommand) {
  EXPECT_EQ(plain({"srun", "-N", "2", "sh", "-c", "python -u train.py  --mbs 4"}),
            "srun -N 2 python -u train.py --mbs 4");
  EXPECT_EQ(plain({"bash", "-c", "torchrun --nproc_per_node=8 \\\n  train.py \\\n  --name 'a b' --n \"it's\" c\\ d"}),
            shell_line({"torchrun", "--nproc_per_node=8", "train.py", "--name", "a b", "--n", "it's", "c d"}));
  EXPECT_EQ(plain({"/bin/bash", "-ex", "-c", "set -o pipefail; exec python train.py \"\""}), "python train.py ''");
  EXPECT_EQ(plain({"python", "train.py", "--shell", "sh"}), "python train.py --shell sh");
  EXPECT_EQ(plain({"python", "train.py", "--shell", "sh", "-c", "f.json"}), "python train.py --shell sh -c f.json");
}

TEST(ShellLines, KeepExportedVariables) {
  const std::string line = "export A=1 && export B='x y' C=; D=2 python train.py";
  EXPECT_EQ(plain({"srun", "sh", "-c", line}), "srun env A=1 'B=x y' C= D=2 python train.py");
  EXPECT_EQ(plain({"sh", "-c", line}), "A=1 'B=x y' C= D=2 python train.py");
  EXPECT_EQ(plain({"Z=0", "sh", "-c", line}), "Z=0 A=1 'B=x y' C= D=2 python train.py");
}

// A login shell reads files of its own before it starts the command.
TEST(ShellLines, KeepALoginShell) {
  EXPECT_EQ(plain({"bash", "-lc", "A=1 python train.py --lr 1e-3"}),
            "bash -lc 'exec \"$@\"' bash env A=1 python train.py --lr 1e-3");
  const Words words = jobs::without_shell({"srun", "bash", "--login", "-c", "python train.py"}).words;
  EXPECT_EQ(shell_line(words), "srun bash --login -c 'exec \"$@\"' bash python train.py");
  EXPECT_EQ(plain(words), shell_line(words)) << "what was made is read as it is";
}

TEST(ShellLines, AreNotReadIfAShellExpandsOrJoinsSomething) {
  EXPECT_EQ(why_not("python train.py | tee log"), "bash -c: its line has a pipe (|)");
  for (const char* line : {"python train.py > log",
                           "python train.py 2>&1",
                           "python train.py &",
                           "python train.py --rank $SLURM_PROCID",
                           "python train.py --rank \"$R\"",
                           "python train.py `hostname`",
                           "cd /work && python train.py",
                           "pip install x; python train.py",
                           "(python train.py)",
                           "python train.py *.json",
                           "python train.py {a,b}",
                           "python ~/train.py ~/data",
                           "python train.py # fast",
                           "if true; then python train.py; fi",
                           "A=1; python train.py",
                           "cd /work",
                           "export A=~/x; python train.py",
                           "python train.py;;",
                           "; python train.py",
                           "export A=1 &&",
                           "export A=1 && ; python train.py",
                           "python train.py \\",
                           "export A=1",
                           "",
                           "python 'train.py",
                           "python train.py || true",
                           "source env.sh"}) {
    EXPECT_NE(why_not(line), "") << line;
  }
  EXPECT_NE(jobs::without_shell({"sh", "-c", "python train.py", "sh", "x"}).why_not, "");
}

// What /bin/sh prints of a line whose program is "show", which prints each of its words in brackets.
std::string shown_by_shell(const std::filesystem::path& directory, const std::string& line) {
  const std::string command =
      fmt::format("PATH={}:/usr/bin:/bin /bin/sh -c {} 2>/dev/null", directory.string(), shell_line({line}));
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "no shell";
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

TEST(ShellLines, OfRandomPiecesAreTheWordsThatTheShellMakes) {
  const TemporaryDirectory directory;
  const std::filesystem::path show = directory.write("show", "#!/bin/sh\nfor a; do printf '[%s]' \"$a\"; done\n");
  std::filesystem::permissions(show, std::filesystem::perms::owner_all);
  const std::vector<std::string> pieces = {"a",  "b=1", " ", "  ", "'",  "\"",  "\\", "\\\n", "\\\\", "$",   "#",
                                           "-x", "~",   ";", "|",  "\t", "[c]", "{",  "=",    "\\\"", "'d'", "\"e f\""};
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 2000 && read < 300; ++i) {
    std::string line = "show ";
    for (int k = 0; k < 6; ++k) line += pieces[random() % pieces.size()];
    const jobs::PlainCommand made = jobs::without_shell({"sh", "-c", line});
    if (!made.why_not.empty()) continue;
    ++read;
    std::string expected;
    for (std::size_t word = 1; word < made.words.size(); ++word) expected += "[" + made.words[word] + "]";
    EXPECT_EQ(made.words.front(), "show") << line;
    EXPECT_EQ(shown_by_shell(directory.path(), line), expected) << line;
  }
  EXPECT_EQ(read, 300);
}

}  // namespace
}  // namespace krigtune::shell_line_test
