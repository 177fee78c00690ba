import HTTPTypes
import Testing

@testable import Assent

@Suite("Payload encryption: which replies are taken for sealed ones")
struct SealedReplyTypeTests {
    private func isSealed(_ types: [String], status: HTTPResponse.Status = .ok) -> Bool {
        var response = HTTPResponse(status: status)
        for type in types { response.headerFields.append(HTTPField(name: .contentType, value: type)) }
        return SealedCall.isSealed(response)
    }

    @Test("One with the media type, however that is written")
    func sealed() {
        for type in ["application/assent-pe", "Application/Assent-PE", "application/assent-pe ;"] {
            #expect(isSealed([type]), "\(type)")
        }
    }

    @Test("None with another type, a parameter, two fields, or another status")
    func unsealed() {
        let type = "application/assent-pe"
        for types in [
            [], [""], ["application/json"], ["application/assent-pe2"], [type + "; v=1"], [type, type],
            [type, "text/html"], ["text/html", type], ["\(type), \(type)"],
        ] as [[String]] { #expect(!isSealed(types), "\(types)") }
        for status in [HTTPResponse.Status.created, .badRequest, .internalServerError] {
            #expect(!isSealed([type], status: status), "\(status)")
        }
    }
}
