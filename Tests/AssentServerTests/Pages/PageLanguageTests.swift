import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("The languages of the hosted pages")
struct PageLanguageTests {
    private func placeholders(_ text: String) -> [String] {
        text.matches(of: /\{[a-z]+\}/).map { String($0.0) }.sorted()
    }

    @Test("German says all that English says, with the same words filled in")
    func german() {
        for text in PageText.allCases {
            let german = PageLanguage("de")[text]
            #expect(german != text.rawValue, "\(text)")
            #expect(placeholders(german) == placeholders(text.rawValue), "\(text)")
        }
    }

    @Test(
        "A browser gets the language that it asks for most",
        arguments: [
            ("", "en"), ("de", "de"), ("de-AT", "de"), ("DE", "de"), ("fr", "en"), ("fr, de;q=0.8, en;q=0.9", "en"),
            ("fr;q=1.0,de;q=0.7", "de"), ("de;q=0", "en"), ("*", "en"), ("it,*;q=0.1", "en"),
            ("de ; q=0.2, en;q=0.1", "de"),
            (";;q=,", "en"), ("de;q=x", "de"), ("pt-BR", "pt-br"), ("pt", "en"), ("x;q=99999999999999999999", "en"),
            (String(repeating: "fr,", count: 40) + "de", "en"),
        ])
    func choice(asked: String, given: String) {
        let languages = PageLanguages(adding: ["pt-br": ["Sign in": "Entrar"]])
        #expect(languages.language(for: [.acceptLanguage: asked]).tag == given)
    }

    @Test("The operator's default is for those who ask for nothing that there is")
    func fallback() {
        let languages = PageLanguages(fallback: "de")
        for asked in [nil, "", "fr", "*", "de"] as [String?] {
            var fields = HTTPFields()
            fields[.acceptLanguage] = asked
            #expect(languages.language(for: fields).tag == "de")
        }
        #expect(languages.language(for: [.acceptLanguage: "en-GB,en;q=0.9,de;q=0.1"]).tag == "en")
    }

    @Test("An operator's texts come before ours, say what journeys say too, and the rest stays as it was")
    func own() {
        let language = PageLanguage("de", ["Sign in": "Einloggen", "Your card's number": "Nummer Ihrer Karte"])
        #expect(language[.signIn] == "Einloggen" && language["Your card's number"] == "Nummer Ihrer Karte")
        #expect(language[.cancel] == "Abbrechen" && language["Anything else"] == "Anything else")
        #expect(PageLanguage("fr", ["Cancel": "Annuler"])[.signIn] == "Sign in")
    }

    @Test("What is filled in is text, and a translation that forgets or invents a word does no harm")
    func filling() {
        let language = PageLanguage(
            "de", [PageText.terms.rawValue: "bis {end} für {user}<b>", PageText.askedBy.rawValue: "von {nobody} {app}"])
        let terms = language.html(.terms, ["user": "<strong>\("a<b>{end}")</strong>", "end": "\("1 & 2")"])
        #expect(terms.description == "bis 1 &amp; 2 für <strong>a&lt;b&gt;{end}</strong>&lt;b&gt;")
        #expect(language.html(.askedBy, ["app": "x"]).description == "von {nobody} {app}")
    }

    @Test("All of a page is in one language, and wrong fields are marked in it")
    func page() throws {
        let content = SignInContent(
            AuthenticatePage(
                authID: Secret("a"),
                content: PageContent(prompts: [
                    .name("User Name"), .password("Password"), .choice("", choices: ["Yes", "Mine"], default: 0),
                    .confirmation(["Approve", "Decline"], default: 1),
                ])), language: PageLanguage("de"))
        let html = try #require(
            content.html(action: "/", client: "Bank", notice: .failed, canCancel: true)
        ).description
        for text in [
            "<h1>Anmelden</h1>", "weiter zu <strong>Bank</strong>", ">Benutzername</label>", ">Passwort</label>",
            "<legend>Wählen Sie</legend>", "<span>Ja</span>", "<span>Mine</span>", ">Freigeben</button>",
            ">Ablehnen</button>", ">Abbrechen</button>", "Das hat nicht geklappt.",
        ] { #expect(html.contains(text), "\(text)") }
        #expect(html.matches(of: /aria-describedby="alert" aria-invalid="true"/).count == 3)
        let calm = try #require(content.html(action: "/", client: nil, notice: .answeredBefore)).description
        #expect(!calm.contains("aria-invalid"))
        let code = SignInContent(
            AuthenticatePage(authID: Secret("a"), content: PageContent(prompts: [.textInput("One Time Password")])))
        #expect(
            try #require(code.html(action: "/", client: nil, notice: nil)).description
                .contains(#"autocomplete="one-time-code" inputmode="numeric""#))
    }
}
