import AssentAuthorization
import AssentCore
import Testing

@Suite("ResourceError")
struct ResourceErrorTests {
    @Test("Each code has a number of its own, and a new one has the vendor's for what is unknown")
    func numbers() {
        let codes = ResourceError.Code.all
        #expect(Set(codes.map(\.number)).count == codes.count && Set(codes.map(\.rawValue)).count == codes.count)
        #expect(ResourceError.Code(rawValue: "later").number == 10000)
        let error = ResourceError(.generic, .deviceRegistrationFailure, "It failed.", reason: .clock)
        #expect(error.number == 9008 && error.notes == ["generic 9008", "clock"])
        let pin = ResourceError(.authentication, .invalidPin, "The PIN is wrong.", triesLeft: 0)
        #expect(pin.notes == ["authentication 9009", "tries left: 0"])
    }

    @Test(
        "What the transport says keeps its words and gets a number",
        arguments: [
            (HTTPTransportError.Code.timedOut, -1001, ResourceError.Domain.url), (.nameNotResolved, -1003, .url),
            (.connectFailed, -1004, .url), (.connectionClosed, -1005, .url), (.malformedReply, -1011, .url),
            (.bodyTooLarge, -1103, .url), (.tlsFailed, -1200, .url), (.pinMismatch, -1202, .url),
            (.untrustedServer, -1202, .url), (.notPinned, 10101, .fetchAnonymousResource),
            (.cancelled, 9006, .generic), (.trustExpired, 9101, .generic), (.integrityFailed, 9102, .generic),
            (.shutDown, -1, .url),
        ])
    func transport(code: HTTPTransportError.Code, number: Int, domain: ResourceError.Domain) {
        let cause = HTTPTransportError(code, "It failed.", mayHaveHadEffect: true)
        let error = ResourceError(cause, .fetchAnonymousResource)
        #expect(error.number == number && error.domain == domain && error.detail == "It failed.")
        #expect(error.transportError == cause && error.suggestion == cause.suggestion && !error.isTransient)
    }
}
