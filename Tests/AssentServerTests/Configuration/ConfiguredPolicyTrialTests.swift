import AssentConfiguration
import AssentCore
import AssentEngine
import Foundation
import Testing

@testable import AssentServer

@Suite("Trying the policies of a server's file")
struct ConfiguredPolicyTrialTests {
    private static let bank =
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path + "/Examples/bank/assent.yaml"

    private static func trial(
        _ method: String, body: String = #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#, user: String? = "ana",
        realm: String? = nil, policySet: String? = nil
    ) throws -> PolicyTrial {
        var trial = ConfiguredPolicyTrial()
        (trial.realm, trial.policySet, trial.caller.user) = (realm, policySet, user)
        return try trial.run(
            file: bank, url: CanonicalResource("https://localhost:8444/transfers"),
            content: RequestContent(method: method, mediaType: "application/json", body: Array(body.utf8)))
    }

    @Test("The bank's file: reading is granted, paying is shown and approved, and nobody does either")
    func bank() throws {
        #expect(try Self.trial("GET").result == .granted)
        let payment = try Self.trial("POST", realm: "alpha", policySet: "bank")
        #expect(payment.result == .transaction && payment.shown.first?.value == "200.00 EUR")
        #expect(payment.findings.map(\.policy).prefix(2) == ["read", "pay"])
        #expect(payment.findings.map(\.field) == ["actionValues", nil, "resources", "resources"])
        #expect(
            try Self.trial("POST", body: #"{"to":"Bob","amount":"1","currency":"EUR","iban":"DE1"}"#).result == .refused
        )
        for method in ["GET", "POST"] { #expect(try Self.trial(method, user: nil).result == .denied) }
        #expect(try Self.trial("DELETE").result == .denied)
    }

    @Test("A realm or a set that the file does not have is named, with those that it has")
    func unknown() throws {
        let realm = #expect(throws: ConfigurationError.self) { try Self.trial("GET", realm: "beta") }
        #expect(realm?.message.contains("no realm /beta; known: /alpha") == true)
        let set = #expect(throws: ConfigurationError.self) { try Self.trial("GET", policySet: "shop") }
        #expect(set?.message.contains("no policy set shop; known: bank") == true)
    }
}
