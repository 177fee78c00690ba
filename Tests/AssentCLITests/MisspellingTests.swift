import Foundation
import Testing

@testable import AssentCLI

@Suite("What somebody meant who typed the name of no command")
struct MisspellingTests {
    @Test(
        "The command that is nearest is proposed, on each level, and nothing where nothing is near",
        arguments: [
            ("logn", "assent login"), ("stauts", "assent status"), ("reqest GET https://a.example", "assent request"),
            ("device inivte", "assent device invite"), ("admin keys rotat", "assent admin keys rotate"),
            ("login", nil), ("device invite --qr", nil), ("frobnicate", nil), ("--help", nil), ("help login", nil),
            ("", nil),
        ] as [(String, String?)])
    func words(typed: String, meant: String?) {
        let words = Misspelling.words(about: typed.split(separator: " ").map(String.init), in: AssentCommand.self)
        #expect(
            words.map { $0.hasSuffix("Did you mean '\(meant ?? "")'?") } == (meant == nil ? nil : true),
            "\(words ?? "-")")
    }

    @Test("A time is a date, a time in UTC, or how long ago it is")
    func since() {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        for (text, time) in [
            ("30m", 1_799_998_200), ("24h", 1_799_913_600), ("7d", 1_799_395_200), ("2027-01-01", 1_798_761_600),
            ("2027-01-01T12:00:00Z", 1_798_804_800), ("yesterday", nil), ("-1h", nil), ("", nil), ("7", nil),
        ] as [(String, Int64?)] {
            #expect(AdminCommand.Audit.time(text, now: now) == time, "\(text)")
        }
    }

    @Test("Only an outcome that nobody knows makes the answer about an approved request unknown")
    func unknownOutcome() {
        for (body, isUnknown) in [
            (#"{"outcome":{"state":"unknown"}}"#, true), (#"{"outcome":{"state":"forwarded"}}"#, true),
            (#"{"outcome":{"state":"taken"}}"#, true), (#"{"outcome":{"state":"notForwarded"}}"#, false),
            (#"{"outcome":{"state":"answered","status":201}}"#, false), (#"{"outcome":null}"#, false),
            ("no JSON", false),
        ] {
            #expect(RequestCommand.isUnknown(Array(body.utf8)) == isUnknown, "\(body)")
        }
    }
}
