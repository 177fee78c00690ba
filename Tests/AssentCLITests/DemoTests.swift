import AssentCore
import Foundation
import Testing

@testable import AssentCLI

@Suite("The demo's pieces")
struct DemoTests {
    @Test("Text cannot break out of the page, and no script or foreign resource is in it")
    func escaping() {
        let evil = #"</text><script>alert("1")</script>&'"# + "\u{1B}[2J\u{202E}"
        let page = SequencePage(
            title: evil, subtitle: evil,
            events: [
                .step(number: 1, title: evil), .message(from: .app, to: .bank, text: evil, refused: true),
                .note(.user, evil), .clock(evil), .check(evil, passed: false),
            ]
        ).html
        #expect(!page.contains("<script"))
        #expect(!page.contains("\u{1B}") && !page.contains("\u{202E}"))
        #expect(!page.contains("http://") && !page.contains("src="))
    }

    @Test("A failed check makes the story fail")
    func failures() {
        let narration = Narration(console: Console(silent: true))
        narration.tell(.check("good", passed: true))
        narration.tell(.check("bad", passed: false))
        #expect(narration.failures == ["bad"])
        #expect(narration.checkCount == 2)
    }

    @Test("A secret is found in every form, and in a piece of twelve bytes")
    func search() {
        let secret = Secret("correct horse battery staple")
        let search = SecretSearch([("password", secret)])
        let bytes = secret.revealBytes()
        for haystack in [
            Array("xx correct horse b yy".utf8), Array(Base64URL.encode(bytes).utf8), Array(Hex.encode(bytes).utf8),
            Array(Data(bytes).base64EncodedString().utf8), Array("%63%6F%72%72%65%63%74".utf8),
        ] { #expect(search.found(in: haystack) == ["password"]) }
        #expect(search.found(in: Array("correct horse".utf8.dropLast(2))) == [])
        #expect(search.found(in: []) == [])
    }
}
