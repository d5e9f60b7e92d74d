# lit configuration: texts with RUN and CHECK lines (LLVM's lit and FileCheck).
import os

import lit.formats

config.name = "mltc"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".ir", ".graph", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params["build"] + "/lit"

mltc = lit_config.params["mltc"]
config.substitutions.append(("%mltc", mltc))
config.substitutions.append(("%root", lit_config.params["root"]))
config.environment["PATH"] = lit_config.params["filecheck_dir"] + os.pathsep + os.environ["PATH"]
# Leaks: the compiler's arenas are freed at exit, whatever the exit.
config.environment["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
config.environment["XDG_CACHE_HOME"] = os.environ.get("MLTC_TEST_CACHE", lit_config.params["build"] + "/cache")
config.environment["MLTC_VERIFY_EACH"] = "1"
if "MLTC_CC" in os.environ:
    config.environment["MLTC_CC"] = os.environ["MLTC_CC"]
