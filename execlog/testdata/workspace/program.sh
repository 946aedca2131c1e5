#!/bin/sh
cat "$0.runfiles/_main/data.txt"
