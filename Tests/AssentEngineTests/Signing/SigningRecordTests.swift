import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Texts that a device signs by itself")
struct SigningRecordTests {
    @Test("The user is shown the text, signs it, and the evidence has it; nobody else is asked")
    func record() async throws {
        let sdk = try SDKWorld(try await SigningWorld())
        let container = try await sdk.enrolled(sdk.device())
        let other = try SDKWorld(sdk.world)
        let second = try await other.enrolled(other.device())
        let transaction = try await container.record("I have read the contract of 2026")
        #expect(transaction.kind == .record && transaction.displayed.text == "I have read the contract of 2026")
        #expect(try await second.transactionIDs().isEmpty)
        let receipt = try await transaction.setStatus("accept")
        #expect(receipt.effect == .approve)
        let bytes = try await sdk.world.provider.evidence.bundle(receipt.transactionID, for: .caller(sdk.world.ana))
        let bundle = try EvidenceBundle(reading: bytes)
        let report = EvidenceVerification.report(on: bundle, trust: bundle.identities.first?.thumbprint)
        #expect(report.contradicted.isEmpty, "\(report.contradicted)")
        let declined = try await container.record("Another text")
        #expect(try await declined.setStatus("deny").effect == .deny)
    }

    @Test("A text that cannot be shown, and a key that is not there, are refused without a call")
    func refused() async throws {
        let sdk = try SDKWorld(try await SigningWorld())
        let container = try await sdk.enrolled(sdk.device())
        for text in ["", "a\u{202E}b", String(repeating: "x", count: 1001)] {
            await #expect(throws: SigningError(.invalidArgument)) { try await container.record(text) }
        }
        await #expect(throws: SigningError(.invalidArgument)) { try await container.record("x", label: "sign-in") }
    }
}
