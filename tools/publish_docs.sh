#!/bin/sh
# Adds a built site to the branch gh-pages, as the folder of one version; lists all versions; pushes.
# The branch is created if it does not exist.
#
#   publish_docs.sh BUILT FOLDER URL    for example: publish_docs.sh build/docs 0.1.0 https://x.github.io/okforest
set -eu
built=$1
folder=$2
url=$3
here=$(dirname "$0")
site=$(mktemp -d)
trap 'git worktree remove --force "$site/pages"; rm -rf "$site"' EXIT

if git fetch --quiet --depth 1 origin gh-pages; then
  git worktree add --quiet -B gh-pages "$site/pages" FETCH_HEAD
else
  git worktree add --quiet --detach "$site/pages"
  git -C "$site/pages" checkout --quiet --orphan gh-pages
  git -C "$site/pages" rm -r --quiet --force .
fi
rm -rf "$site/pages/${folder:?}"
cp -R "$built" "$site/pages/$folder"
python3 "$here/docs_versions.py" "$site/pages" "$url"
git -C "$site/pages" add --all
if git -C "$site/pages" diff --cached --quiet; then
  echo "okforest: nothing has changed in $folder"
else
  git -C "$site/pages" -c user.name=github-actions \
    -c user.email=github-actions@users.noreply.github.com commit --quiet -m "Documentation of $folder"
  git -C "$site/pages" push --quiet origin gh-pages
  echo "okforest: published $folder"
fi
