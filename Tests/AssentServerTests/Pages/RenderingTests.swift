import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Pages are made of text") struct RenderingTests {
    private static let hostile = "\"'><script>alert(1)</script><img src=x onerror=x>\u{202E}\u{0}\n&amp;"

    private func content(
        _ prompts: [CallbackPrompt], _ presentation: PagePresentation = .plain
    ) -> SignInContent {
        SignInContent(
            AuthenticatePage(
                authID: Secret("a\"><b"), content: PageContent(presentation: presentation, prompts: prompts)))
    }

    /// The names of all elements that a reader of the page would find.
    private func elements(_ html: HTML) -> Set<String> {
        Set(html.description.matches(of: /<([a-zA-Z!][a-zA-Z0-9]*)/).map { String($0.1) })
    }

    @Test("No callback, whatever it says, adds an element, an attribute or a character that reorders others")
    func escaping() throws {
        let evil = Self.hostile
        let prompts: [CallbackPrompt] = [
            .name(evil), .password(evil), .textInput(evil, default: evil), .textOutput(evil),
            .textOutput(evil, kind: .warning), .textOutput(evil, kind: .error),
            .choice(evil, choices: [evil, evil], default: 1),
            .approval(
                PendingApproval(
                    id: evil, journey: evil, method: evil, resource: evil, contentType: evil, bodySHA256: evil,
                    display: [DisplayField(label: evil, value: evil)], expiresAt: 0)),
            .confirmation([evil, evil], default: 1), .hiddenValue(id: evil, value: evil),
            .custom(CustomCallback(evil, outputs: [evil: .string(evil)])),
        ]
        let page = content(prompts, PagePresentation(stage: evil, header: evil, description: evil))
        let html = try #require(
            page.html(action: evil, client: evil, notice: .failed))
        let known: Set<String> = [
            "h1", "p", "form", "input", "label", "br", "fieldset", "legend", "span", "dl", "div", "dt", "dd", "button",
            "strong", "wbr", "bdi",
        ]
        #expect(elements(html).isSubset(of: known))
        #expect(!html.description.contains("\u{202E}") || html.description.contains("value="))
        let shown = html.description.replacing(/value="[^"]*"/, with: "").replacing(/action="[^"]*"/, with: "")
        #expect(!shown.contains("\u{202E}") && !shown.contains("\u{0}") && shown.contains("\\u{202E}"))
        #expect(shown.matches(of: /<[^>]*onerror/).isEmpty)
        for hasLogo in [false, true] {
            let frame = PageFrame(
                name: evil, hasLogo: hasLogo, stylesheet: evil, language: PageLanguage(evil, ["Sign in": evil]))
            let document = PageDocument(title: evil, body: html, frame: frame, next: evil).html
            #expect(
                elements(document).subtracting(known) == [
                    "!DOCTYPE", "html", "head", "meta", "title", "link", "body", "main",
                ])
        }
        let message = SignInMessage(EngineError(.forbidden, evil), again: evil)
        #expect(elements(message.html(.english)).isSubset(of: ["h1", "p", "a"]))
        #expect(elements(SignInPages.goingBack(evil, .english)).isSubset(of: ["h1", "p", "a"]))
        #expect(elements(SignInPages.beginning(evil, .english)).isSubset(of: ["h1", "p", "form", "button"]))
    }

    @Test(
        "What was not approved says why in the reader's language: each reason has a sentence of its own",
        arguments: [
            (ApprovalStage.declined, "You declined it.", "Sie haben abgelehnt."),
            (.unanswered, "Nobody answered on your device in time.", "wurde nicht rechtzeitig geantwortet."),
            (.noDevice, "You have no device that can approve this.", "Sie haben kein Gerät"),
            (.failed, "An answer was wrong, here or on your device.", "Eine Antwort hier oder auf Ihrem Gerät"),
        ])
    func notApproved(stage: ApprovalStage, english: String, german: String) {
        let reasons = [ApprovalStage.declined, .unanswered, .noDevice, .failed].map { SignInRoute.reason($0) }
        for (language, text) in [(PageLanguage.english, english), (PageLanguage("de"), german)] {
            let html = SignInMessage.notApproved(SignInRoute.reason(stage), back: nil).html(language).description
            #expect(html.contains(text) && html.contains(#"role="alert""#), "\(html)")
            #expect(reasons.count { html.contains("\(language.html($0, [:]))") } == 1)
        }
    }

    @Test("Scripts for other clients are neither run nor shown, metadata is not to be seen")
    func invisible() throws {
        let html = try #require(
            content([
                .textOutput("var a = 1", kind: .script),
                .custom(CustomCallback("MetadataCallback", outputs: ["data": ["secret": "not for the page"]])),
                .textOutput(""),
                .name("N"),
            ]).html(action: "/", client: nil, notice: nil)
        ).description
        #expect(!html.contains("var a") && !html.contains("not for the page"))
        #expect(html.contains(#"name="IDToken4""#))
        #expect(html.contains(#"value="TextOutputCallback MetadataCallback TextOutputCallback NameCallback""#))
    }

    @Test("What a page cannot ask is not asked wrongly")
    func unsupported() {
        let binding = CustomCallback("DeviceBindingCallback", inputs: [.text(), .text(part: "x")])
        #expect(content([.name("N"), .custom(binding)]).html(action: "/", client: nil, notice: nil) == nil)
        let waiting = CustomCallback("PollingWaitCallback")
        #expect(content([.custom(waiting)]).html(action: "/", client: nil, notice: nil) != nil)
    }

    @Test("A browser is led on to the whole of an address that has an apostrophe in it")
    func apostrophe() throws {
        let address = "https://api.bank.example/people/O'Brien?a='b'&c"
        let document = PageDocument(
            title: "", body: "", frame: PageFrame(stylesheet: "/am/UI/style.css"), next: address
        ).html.description
        let found = try #require(document.firstMatch(of: /content="0; url=([^"]*)"/)).output.1
        let value = found.replacing("&#39;", with: "'").replacing("&amp;", with: "&")
        // Where it begins with a quote, the address ends at the next one (HTML, shared declarative refresh steps).
        let quote = value.first.flatMap { "'\"".contains($0) ? $0 : nil }
        let read = quote.map { quote in String(value.dropFirst().prefix { $0 != quote }) } ?? String(value)
        #expect(read == address)
    }

    @Test("A text of several lines keeps them")
    func lines() throws {
        let html = try #require(content([.textOutput("a\nb <c>")]).html(action: "/", client: nil, notice: nil))
        #expect(html.description.contains(#"<p class="message">a<br>b &lt;c&gt;</p>"#))
    }

    @Test("The cursor begins in the first field, and only there; the chosen default is chosen")
    func focus() throws {
        let html = try #require(
            content([.choice("C", choices: ["a", "b", "c"], default: 1), .name("N"), .password("P")]).html(
                action: "/", client: nil, notice: nil)
        ).description
        #expect(html.matches(of: /autofocus/).count == 1)
        #expect(html.contains(#"value="1" required checked autofocus"#))
    }

    @Test("A page that is asked again keeps the name that was typed, and the cursor begins behind it")
    func typedName() throws {
        var page = AuthenticatePage(authID: Secret("a"), content: PageContent(prompts: [.name("N"), .password("P")]))
        page.isAskedAgain = true
        page.typedName = "ana\"><b>"
        let html = try #require(SignInContent(page).html(action: "/", client: nil, notice: .notAccepted)).description
        #expect(html.contains(#"value="ana&quot;&gt;&lt;b&gt;""#))
        #expect(html.contains(#"autocomplete="current-password" required autofocus"#))
        #expect(html.matches(of: /autofocus/).count == 1)
    }

    @Test("An address breaks between its parts, and a time is written as the reader's language does")
    func words() {
        #expect(
            HTML(breaking: "https://a.b.example/c?<d>").description
                == "https://<wbr>a.<wbr>b.<wbr>example/<wbr>c?<wbr>&lt;d&gt;")
        let date = Date(timeIntervalSince1970: 1_774_000_000)
        #expect(PageLanguage.english.text(date, withTime: true) == "20 March 2026 at 9:46 UTC")
        #expect(PageLanguage("de").text(date, withTime: false) == "20. März 2026")
    }
}
