import AssentAuthorization
import AssentCore
import HTTPTypes
import Testing

/// The four ways to a request, which must not differ.
enum RequestMaker: CaseIterable {
    case request, mutable, builder, factory

    /// The request made in this way.
    func make(_ given: ResourceRequest) -> ResourceRequest {
        switch self {
        case .request: return given
        case .mutable:
            var draft = MutableResourceRequest()
            draft.path = given.path
            draft.method = given.method
            draft.parameters = given.parameters
            draft.parametersEncoding = given.parametersEncoding
            draft.body = given.body
            draft.multipartData = given.multipartData
            draft.headers = given.headers
            draft.limits = given.limits
            draft.allowsUnsealed = given.allowsUnsealed
            return draft.immutable
        case .builder:
            return RequestBuilder().setPath(given.path).setMethod(given.method).setParameters(given.parameters)
                .setParametersEncoding(given.parametersEncoding).setBody(given.body)
                .setMultipartData(given.multipartData).setHeaders(given.headers).setLimits(given.limits)
                .setAllowsUnsealed(given.allowsUnsealed).build()
        case .factory:
            return ResourceRequestFactory.makeResourceRequest(
                path: given.path, method: given.method, parameters: given.parameters,
                parametersEncoding: given.parametersEncoding, body: given.body, multipartData: given.multipartData,
                headers: given.headers, limits: given.limits, allowsUnsealed: given.allowsUnsealed)
        }
    }

    /// What sending the request is refused with, which must be the same in all four ways.
    static func refusal(_ given: ResourceRequest, base: String? = resources) -> ResourceError.Code? {
        let codes = allCases.map { way in
            do throws(ResourceError) {
                _ = try way.make(given).httpCall(base: base)
                return ResourceError.Code?.none
            } catch {
                return error.code
            }
        }
        #expect(Set(codes).count == 1)
        return codes[0]
    }
}

/// The address of the resources in these tests.
let resources = "https://api.bank.example/resources/"

/// A text in several mixtures of capitals and small letters.
func cases(of text: String) -> [String] {
    let mixed = text.enumerated().map { index, letter in
        index.isMultiple(of: 2) ? String(letter).lowercased() : String(letter).uppercased()
    }
    return [text, text.lowercased(), text.uppercased(), mixed.joined()]
}

/// A field by any name.
func fields(_ name: String, _ value: String = "x") throws -> HTTPFields {
    var fields = HTTPFields()
    fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
    return fields
}
