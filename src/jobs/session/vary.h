#pragma once
#include <string>

#include "core/json.h"

namespace krigtune::jobs {

// What `--vary 'NAME=FLAG:VALUES'` says: a parameter, where the user's command has its value, and what is tried.
//
//   micro_batch=--mbs:1,2,4,8            a flag of the command
//   lr=train.lr=:1e-5..1e-2:log          an override word, as Hydra's
//   workers=$NUM_WORKERS:0..8            an environment variable
//   seq=conf/train.yaml#data.seq_len:512,1024   a key of a file that the command names
//   compile=--compile:true,false         a switch that is present or absent

/// Where a command has a value.
struct VaryPlace {
  enum class Is {
    kFlag,      ///< "--mbs 4" or "--mbs=4"
    kOverride,  ///< "train.lr=3e-4", a word of its own
    kVariable,  ///< of the environment
    kFileKey,   ///< of a YAML, TOML or JSON file
  };
  Is is = Is::kFlag;
  std::string name;          ///< "--mbs", "train.lr", "NUM_WORKERS", "data.seq_len"; "+data.x" where the file lacks it
  std::string file;          ///< kFileKey: as the user writes it
  bool is_joined = false;    ///< kFlag: "--mbs=", where it has to be appended
  std::string text() const;  ///< as it was written
};

struct Vary {
  std::string text;  ///< the whole, for messages
  std::string name;  ///< of the parameter
  VaryPlace place;
  Json values;  ///< as in a session's block "space"; null: left to the session
};

/// Throws UserError with the text and what to write instead.
Vary read_vary(const std::string& text);

/// "[1, 2, 4]", {"min": 1, "max": 64, "scale": "log2"}, ...: what VALUES means. `where` begins the errors.
///   a,b,c         a list of numbers, of texts, or of true and false
///   1..8          every integer
///   1..64:log2    the powers of two
///   1e-5..1e-2    real numbers; with :log by their logarithm. An end with a point or an exponent makes them real.
///   16..4096:log  integers, two for each doubling
Json read_values(const std::string& text, const std::string& where);

}  // namespace krigtune::jobs
