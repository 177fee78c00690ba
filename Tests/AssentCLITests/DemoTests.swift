import AssentCore
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

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

    @Test("The diagram of the payment ends with the refusal of the same request, and has neither clock nor other steps")
    func payment() {
        let narration = Narration(to: Console(silent: true))
        let told: [Narration.Event] = [
            .step(number: 3, title: "asked"), .check("before", passed: true), .step(number: 4, title: "pays"),
            .clock("moved"), .check("paid", passed: true), .step(number: 5, title: "spent"),
            .message(from: .gateway, to: .app, text: "409", refused: true), .check("again", passed: true),
            .check("another amount", passed: true), .step(number: 6, title: "refreshed"),
        ]
        for event in told { narration.tell(event) }
        #expect(
            narration.payment == [
                .step(number: 1, title: "pays"), .check("paid", passed: true), .step(number: 2, title: "spent"),
                .message(from: .gateway, to: .app, text: "409", refused: true), .check("again", passed: true),
            ])
        let file = SequenceDrawing(events: [.note(.user, "<script>&")]).svg(label: "\"<", isFile: true)
        #expect(file.hasPrefix("<svg xmlns=") && !file.contains("<script") && !file.contains("\"<\""))
    }

    @Test("The narration shows what the bank is asked without the query, and refusals as refusals")
    func bankLines() {
        let narration = Narration(to: Console(silent: true))
        narration.tellBank("POST /transfers?to=Bob HTTP/1.1", isReply: false)
        narration.tellBank("HTTP/1.1 201 Created", isReply: true)
        narration.tellBank("HTTP/1.1 409 Conflict", isReply: true)
        narration.tellBank("nonsense", isReply: true)
        #expect(
            narration.events == [
                .message(from: .gateway, to: .bank, text: "POST /transfers", refused: false),
                .message(from: .bank, to: .gateway, text: "201", refused: false),
                .message(from: .bank, to: .gateway, text: "409", refused: true),
            ])
    }

    @Test("A failed check makes the story fail")
    func failures() {
        let narration = Narration(to: Console(silent: true))
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
