//! Texts keep the style guide (`docs/style.md`): words to avoid, the same numbers, options and names in English and
//! Chinese, chapters under their own titles. The lists are `knowledge/style/words.json`.

#[path = "docs/pages.rs"]
mod pages;
#[path = "style/texts.rs"]
mod texts;
#[path = "style/words.rs"]
mod words;

use std::collections::BTreeSet;

use pages::{BOOKS, Page, chapters_of, fresh};
use regex::Regex;
use texts::Text;
use words::Words;

#[test]
fn texts_avoid_words_that_readers_stumble_over() {
    let words = Words::read();
    let mut found = Vec::new();
    for text in texts::all() {
        let searched = words::without_code(&text.words);
        for word in words.avoid.iter().filter(|word| word.pattern.is_match(&searched)) {
            if !words.allows(&text.place, word) {
                let Text { place, words: text } = &text;
                found.push(format!("{place}: {}: write {}\n    {text}", word.shown, word.write));
            }
        }
    }
    assert!(found.is_empty(), "{} texts:\n{}", found.len(), found.join("\n"));
}

#[test]
fn files_that_may_use_such_words_still_do() {
    let words = Words::read();
    let texts = texts::all();
    for allowed in &words.allow {
        let is_used = texts.iter().any(|text| {
            text.place.starts_with(&allowed.file)
                && words
                    .avoid
                    .iter()
                    .any(|word| word.pattern.is_match(&words::without_code(&text.words)))
        });
        assert!(is_used, "{} needs no exception any more", allowed.file);
    }
}

#[test]
fn both_languages_have_the_same_numbers_options_and_names() {
    let (number, option) = (
        Regex::new(r"\d+(?:[.,]\d+)*%?").expect("a pattern"),
        Regex::new("--[a-z][a-z-]+").expect("a pattern"),
    );
    let mut differing = Vec::new();
    for (place, english, chinese) in texts::pairs() {
        let compare: [fn(&str, &Regex) -> BTreeSet<String>; 2] = [numbers, matches];
        for (of, pattern) in compare.iter().zip([&number, &option]) {
            let (english_has, chinese_has) = (of(&english, pattern), of(&chinese, pattern));
            if english_has != chinese_has {
                differing.push(format!(
                    "{place}: {english_has:?} {chinese_has:?}\n    {english}\n    {chinese}"
                ));
            }
        }
        if names(&english) != names(&chinese) {
            differing.push(format!("{place}\n    {english}\n    {chinese}"));
        }
    }
    assert!(differing.is_empty(), "{} pairs:\n{}", differing.len(), differing.join("\n"));
}

fn matches(text: &str, pattern: &Regex) -> BTreeSet<String> {
    pattern.find_iter(text).map(|found| found.as_str().to_owned()).collect()
}

/// Numbers of two digits and more: one language writes `2` where the other has "two".
fn numbers(text: &str, pattern: &Regex) -> BTreeSet<String> {
    let plain = words::without_code(text).replace(',', "");
    let has_two = |found: &String| found.chars().filter(char::is_ascii_digit).count() > 1;
    // Parts of names, such as bf16 or 1e9, are no numbers of the sentence; 8x is.
    let words = plain.split(|letter: char| {
        !letter.is_ascii_alphanumeric() && !['.', '%', '_'].contains(&letter)
    });
    let bare = words.map(|word| word.trim_end_matches('x'));
    let bare = bare.filter(|word| !word.contains(|letter: char| letter.is_ascii_alphabetic()));
    bare.flat_map(|word| matches(word, pattern)).filter(has_two).collect()
}

/// Words in backticks; a quoted message may be in backticks in one language and in quotes in the other.
fn names(text: &str) -> BTreeSet<String> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| !span.contains(' ')).map(str::to_owned).collect()
}

#[test]
fn chapters_are_listed_under_their_titles() {
    for book in BOOKS {
        let summary = Page::read(&format!("{book}/SUMMARY.md"));
        for chapter in chapters_of(book) {
            let title = chapter.text.lines().next().unwrap_or_default().trim_start_matches("# ");
            let path = chapter.path.strip_prefix(book).unwrap_or_default().trim_start_matches('/');
            let link = format!("[{title}]({path})");
            assert!(summary.text.contains(&link), "{} has no {link}", summary.path);
        }
    }
}

#[test]
fn the_style_guide_has_the_words() {
    let words = Words::read();
    for path in ["docs/style.md", "docs/zh/style.md"] {
        let page = Page::read(path);
        let (glossary, avoid) = if page.is_chinese() {
            ("概念 | 英文 | 中文", "不用 | 改写为")
        } else {
            ("concept | English | Chinese", "avoid | write")
        };
        let text = pages::filled(&page, "glossary", &words.glossary(glossary));
        let page = Page { path: page.path, text };
        fresh(path, &pages::filled(&page, "words", &words.table(avoid)));
    }
}
