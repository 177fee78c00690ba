import AssentCore
import AssentEngine
import Foundation
import Testing

@testable import AssentServer

@Suite("The example of policies for lists")
struct BatchPolicyTests {
    private static let file =
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path + "/Examples/policies/batch.yaml"

    /// A batch with so many payments, and with further members.
    static func batch(_ count: Int, more: String = "") -> String {
        let payments = (1...count).map {
            #"{"creditor":{"name":"Payee \#($0)"},"amount":"\#($0).50","currency":"EUR","reference":"r"}"#
        }
        return #"{"debtor":{"iban":"DE89370400440532013000"},"payments":[\#(payments.joined(separator: ","))]\#(more)}"#
    }

    private static func trial(
        _ body: String, method: String = "POST", language: String = "en"
    ) throws -> PolicyTrial {
        var trial = ConfiguredPolicyTrial()
        (trial.language, trial.caller.user) = (language, "ana")
        return try trial.run(
            file: file, url: CanonicalResource("https://localhost:8444/batches"),
            content: RequestContent(method: method, mediaType: "application/json", body: Array(body.utf8)))
    }

    @Test("Each payment has its lines, in the user's language, and English where there is no other")
    func shown() throws {
        for (language, from, to, amount) in [
            ("en", "From", "To", "Amount"), ("de", "Von", "An", "Betrag"), ("fr", "From", "To", "Amount"),
        ] {
            let trial = try Self.trial(Self.batch(2, more: #","reference":"x""#), language: language)
            #expect(trial.result == .transaction)
            #expect(
                trial.shown == [
                    DisplayField(label: from, value: "DE89370400440532013000"),
                    DisplayField(label: to, value: "Payee 1"), DisplayField(label: amount, value: "1.50 EUR"),
                    DisplayField(label: to, value: "Payee 2"), DisplayField(label: amount, value: "2.50 EUR"),
                ])
        }
    }

    @Test("More payments than a user is shown, none, and a member that is not shown are refused")
    func refused() throws {
        #expect(try Self.trial(Self.batch(7)).shown.count == 15)
        #expect(try Self.trial(Self.batch(8)).result == .refused)
        let none = #"{"debtor":{"iban":"DE89370400440532013000"},"payments":[]}"#
        #expect(try Self.trial(none).result == .refused)
        let unseen = try Self.trial(Self.batch(1, more: #","executeAt":"2026-01-01""#))
        #expect(unseen.result == .refused && unseen.explanation.contains("executeAt"))
    }

    @Test("The gateway asks for the file's own action, and no policy speaks of the method")
    func action() throws {
        let put = try Self.trial(Self.batch(1), method: "PUT")
        #expect(put.result == .denied && put.findings.map(\.reason).allSatisfy { $0.contains("nothing of PUT") })
        #expect(try Self.trial("", method: "GET").result == .granted)
    }
}
