//! The documents hold: commands print what is shown, links lead somewhere, paths exist, generated pages are fresh.
//!
//! Checked are the READMEs, `CONTRIBUTING.md` and every chapter of both books. Run with
//! `ZEROPILOT_UPDATE_DOCS=1` to write what is shown or generated, then read it.

#[path = "docs/answers/mod.rs"]
mod answers;
#[path = "docs/commands.rs"]
mod commands;
#[path = "docs/limits.rs"]
mod limits;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/manifests.rs"]
mod manifests;
#[path = "docs/pages.rs"]
mod pages;
#[path = "docs/paths.rs"]
mod paths;
#[path = "docs/published.rs"]
mod published;
#[path = "docs/readme.rs"]
mod readme;
#[path = "docs/reference.rs"]
mod reference;
#[path = "docs/shapes.rs"]
mod shapes;
#[path = "docs/tour.rs"]
mod tour;

use pages::{Page, fresh};
use zeropilot_text::Language;
use zeropilot_view::answers::Shapes;

fn shows_what_happens(pages: Vec<Page>) {
    for page in pages {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let real = commands::with_real_output(&page, directory.path());
        // A page that is generated may be written by another test meanwhile.
        if real != page.text {
            fresh(&page.path, &real);
        }
        commands::run_tables(&page, directory.path());
        commands::flags_exist(&page);
    }
}

#[test]
fn the_english_readme_shows_what_happens() {
    shows_what_happens(vec![Page::read("README.md")]);
}

#[test]
fn the_chinese_readme_shows_what_happens() {
    shows_what_happens(vec![Page::read("README.zh-CN.md")]);
}

#[test]
fn the_readmes_are_short_and_have_the_words_that_people_search_for() {
    for path in ["README.md", "README.zh-CN.md"] {
        assert_eq!(readme::faults(&Page::read(path)), Vec::<String>::new());
    }
}

#[test]
fn the_accuracy_that_documents_quote_is_that_of_the_published_runs() {
    let accuracy = Page::read("docs/accuracy.md").text;
    for (path, quotes) in published::QUOTES {
        let missing = published::missing(&Page::read(path), quotes, &accuracy);
        assert_eq!(missing, Vec::<String>::new());
    }
}

#[test]
fn every_setting_that_no_prediction_follows_is_listed() {
    for (path, language) in
        [("docs/limits.md", Language::English), ("docs/zh/limits.md", Language::Chinese)]
    {
        fresh(path, &limits::page(&Page::read(path), language));
    }
}

#[test]
fn the_english_chapters_show_what_happens() {
    shows_what_happens(pages::chapters().into_iter().filter(|page| !page.is_chinese()).collect());
}

#[test]
fn the_chinese_chapters_show_what_happens() {
    shows_what_happens(pages::chapters().into_iter().filter(Page::is_chinese).collect());
}

#[test]
fn every_chapter_is_in_the_book_of_its_language() {
    let listed: Vec<String> = pages::chapters().into_iter().map(|page| page.path).collect();
    for path in pages::below("docs").iter().filter(|path| path.ends_with(".md")) {
        assert!(path.ends_with("/SUMMARY.md") || listed.contains(path), "{path} is in no book");
    }
    assert!(!pages::chapters_of("docs").iter().any(Page::is_chinese), "one book per language");
}

#[test]
fn guides_and_concepts_exist_in_both_languages() {
    for directory in ["guide", "concepts"] {
        let names = |root: &str| -> Vec<String> {
            let root = format!("{root}/{directory}/");
            let files = pages::below(&root);
            files.iter().filter_map(|path| path.strip_prefix(&root)).map(str::to_owned).collect()
        };
        assert_eq!(names("docs"), names("docs/zh"));
    }
}

#[test]
fn manifests_have_the_exit_codes_and_options_of_the_program() {
    let [english, chinese] = ["docs/schedulers.md", "docs/zh/schedulers.md"]
        .map(|path| manifests::of(&Page::read(path)));
    let kinds: Vec<_> = english.iter().map(manifests::Manifest::kind).collect();
    let wanted = [
        ("batch/v1", "Job"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(english.len(), chinese.len());
    for (english, chinese) in english.iter().zip(&chinese) {
        assert_eq!(english.0, chinese.0, "both languages show one manifest");
        assert_eq!(english.faults(), Vec::<String>::new());
    }
}

#[test]
fn links_lead_somewhere() {
    let broken: Vec<String> = pages::all().iter().flat_map(links::broken).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn paths_that_are_named_exist() {
    let missing: Vec<String> = pages::all().iter().flat_map(paths::missing).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_reference_is_what_the_program_says() {
    for (name, chapter) in reference::CHAPTERS {
        fresh(&format!("docs/{name}"), &chapter(Language::English));
        fresh(&format!("docs/zh/{name}"), &chapter(Language::Chinese));
    }
}

#[test]
fn the_python_classes_are_the_shapes_of_answers() {
    fresh("python/zeropilot/_answers.py", &answers::python::module(&Shapes::all()));
}

#[test]
fn the_types_of_the_page_are_the_shapes_of_answers() {
    fresh("web/src/answers.ts", &answers::typescript::module(&Shapes::all()));
}

#[test]
fn answers_have_the_shapes_that_are_documented() {
    shapes::answers_are_valid();
}

#[test]
fn the_reference_names_the_fields_of_answers_and_records() {
    fresh("docs/reference/json.md", &shapes::chapter(Language::English));
    fresh("docs/zh/reference/json.md", &shapes::chapter(Language::Chinese));
}

#[test]
fn every_variable_of_ours_is_explained() {
    let (named, explained) = reference::own_variables();
    assert_eq!(named, explained);
}

#[test]
fn the_help_of_run_names_the_codes_of_its_causes() {
    assert_eq!(reference::codes_in_help_differ(), Vec::<String>::new());
}

#[test]
fn the_pictures_of_the_tour_show_what_happens() {
    fresh("docs/images/tour-en.svg", &tour::picture(Language::English));
    fresh("docs/images/tour-zh.svg", &tour::picture(Language::Chinese));
}
