import AssentCore
import Foundation
import Testing

@Suite("AssentError")
struct AssentErrorTests {
    @Test("Errors are equal by their code, and by nothing else")
    func equality() {
        #expect(SecretStoreError(.busy, "One.") == SecretStoreError(.busy, "Other.", suggestion: "Wait."))
        #expect(SecretStoreError(.busy, "One.") != SecretStoreError(.absent, "One."))
        #expect(Set([WireError(.malformed, "a"), WireError(.malformed, "b"), WireError(.refused, "a")]).count == 2)
        #expect(
            HTTPTransportError(.timedOut, "", mayHaveHadEffect: true).hashValue
                == HTTPTransportError(.timedOut, "x").hashValue)
    }

    @Test("One catch gets every error, with its code, its words and what to do")
    func oneCatch() throws {
        let errors: [any Error] = [
            WireError(.malformed, "It ends early."),
            KeyProviderError(.unavailable, "No token.", suggestion: "Plug it in."),
        ]
        let caught = errors.compactMap { $0 as? any AssentError }
        #expect(caught.map { $0.code.rawValue } == ["malformed", "unavailable"])
        #expect(caught.map(\.detail) == ["It ends early.", "No token."])
        #expect(caught.map(\.suggestion) == [nil, "Plug it in."])
        #expect(caught.map(\.isTransient) == [false, true])
    }

    @Test("The description has the code, the detail, the notes and what to do")
    func description() {
        let error = HTTPTransportError(.timedOut, "No reply.", mayHaveHadEffect: true)
        let advice = "Find out what became of the request before you send it again."
        #expect("\(error)" == "timedOut: No reply. (the request may have had an effect) \(advice)")
        #expect(error.explanation == "No reply. (the request may have had an effect) \(advice)")
        #expect("\(SecretStoreError(.busy, ""))" == "busy")
        #expect((error as any Error).localizedDescription == "No reply.")
    }

    @Test("An error whose maker names nothing to do says what is usual for its code")
    func usualAdvice() {
        #expect(HTTPTransportError(.pinMismatch, "x").suggestion?.contains("Compare the pins") == true)
        #expect(HTTPTransportError(.connectFailed, "x", suggestion: "Start it.").suggestion == "Start it.")
        #expect(HTTPTransportError(.connectFailed, "x").afterSending().suggestion?.hasPrefix("Find out") == true)
        let json = #expect(throws: JSONError.self) { try JSONValue.parse("{") }
        #expect(json?.code == .unexpectedEnd && json?.detail == "The JSON ends in the middle.")
        #expect(json?.suggestion?.isEmpty == false && (json as (any Error)?) is any AssentError)
    }

    @Test("A request that may have had an effect is nothing to try again by itself")
    func transience() {
        #expect(HTTPTransportError(.timedOut, "").isTransient && !HTTPTransportError(.pinMismatch, "").isTransient)
        #expect(!HTTPTransportError(.timedOut, "").afterSending().isTransient)
    }

    @Test("A code that this version does not know is kept")
    func unknownCode() {
        let code = SecretStoreError.Code(rawValue: "fromTheFuture")
        #expect(code.description == "fromTheFuture" && code != .busy && code == .init(rawValue: "fromTheFuture"))
    }
}
