//! What the compiler says to every construct outside the language: `ui/*.rs` with the expected words in `ui/*.stderr`.
//! `TRYBUILD=overwrite cargo test -p polyhalo-tests --test ui` writes the words anew; read the difference before committing.

#[test]
fn mistakes_are_explained_at_the_users_tokens() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/*.rs");
}
