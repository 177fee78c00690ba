package import AssentCore
package import HTTPTypes

extension ResourceRequest {
    /// The methods that resources are called by.
    package static let methods: [HTTPRequest.Method] = [.get, .post, .put, .patch, .head, .delete]

    /// What is sent of this request: the one way from what an app asks to a call.
    ///
    /// - Parameters:
    ///   - base: the address of the resources, for a path that is not absolute.
    ///   - domain: whose request it is, for errors.
    ///   - sessionField: the name of the field that carries a session.
    ///   - limits: where the request has none.
    ///   - random: where the boundary of a form with files comes from.
    ///   - origins: remembers where the request before went.
    /// - Returns: the call, with the content and the fields that belong to it.
    /// - Throws: ``ResourceError``: `invalidMethod`, `invalidHeaders`, `invalidRequest`.
    package func httpCall(
        base: String? = nil, domain: ResourceError.Domain = .fetchResource,
        sessionField: String = WireName.sessionCookie, limits: HTTPLimits = HTTPLimits(),
        random: any RandomSource = SystemRandom(), origins: OriginMemory = OriginMemory()
    ) throws(ResourceError) -> HTTPCall {
        guard Self.methods.contains(method) else {
            throw ResourceError(domain, .invalidMethod, "Resources are not called by this method.")
        }
        try checkFields(domain, sessionField)
        do throws(WireError) {
            let address = try ResourceAddress(path, base: base)
            var fields = headers
            let (query, content) = try lowered(&fields, random)
            var call = try HTTPCall(
                method, url: address.appending(query: query), headerFields: fields, body: content,
                limits: self.limits ?? limits, remembering: origins)
            call.mustBeSealed = address.isAbsolute && !allowsUnsealed
            return call
        } catch {
            throw ResourceError(domain, .invalidRequest, "The request cannot be sent as it is: \(error.detail).")
        }
    }

    private func checkFields(_ domain: ResourceError.Domain, _ sessionField: String) throws(ResourceError) {
        guard !headers.isEmpty else { return }
        for field in headers {
            let name = field.name
            let isWritten = name == .contentType && !multipartData.isEmpty
            let isSession = ProtectedField.isSession(name, named: sessionField)
            if isWritten || isSession || ProtectedField.isInTable(name) {
                throw ResourceError(
                    domain, .invalidHeaders, "The field \(name.rawName) is not one that an app may give.")
            }
            guard field.value.allBytes(satisfy: { $0.isASCIIPrintable || $0 == 0x09 }) else {
                throw ResourceError(
                    domain, .invalidHeaders, "The field \(name.rawName) has characters that are not ASCII.",
                    suggestion: "Write the value in ASCII.")
            }
        }
    }

    /// What goes behind the path, and the content; the field `Content-Type` is set when it belongs to the content.
    private func lowered(
        _ fields: inout HTTPFields, _ random: any RandomSource
    ) throws(WireError) -> (query: String, content: HTTPBody?) {
        if !multipartData.isEmpty {
            guard method == .post else { throw WireError(.refused, "a form with files is sent by POST alone") }
            guard body == nil else { throw WireError(.refused, "a form with files has no other content") }
            let form = try MultipartForm(
                fields: FormItems(parameters: parameters ?? JSONObject()), parts: multipartData, random: random)
            fields[.contentType] = form.contentType
            return ("", form.body)
        }
        if let body {
            if fields[.contentType] == nil { fields[.contentType] = MultipartPart.octetStream }
            return ("", body)
        }
        guard let parameters else { return ("", nil) }
        if [.get, .head, .delete].contains(method) {
            return (FormEncoding.encode(try FormItems(parameters: parameters)), nil)
        }
        let content = try parametersEncoding.content(parameters)
        if fields[.contentType] == nil { fields[.contentType] = parametersEncoding.mediaType }
        return ("", content)
    }
}

extension ParametersEncoding {
    /// Parameters as content.
    ///
    /// - Throws: ``WireError``: `duplicate` for a name that is there twice; `malformed` for what has no form.
    fileprivate func content(_ parameters: JSONObject) throws(WireError) -> HTTPBody {
        switch self {
        case .formURL: return HTTPBody(FormEncoding.encode(try FormItems(parameters: parameters)))
        case .json:
            guard !Self.hasDuplicates(.object(parameters)) else {
                throw WireError(.duplicate, "a name is there twice in the parameters")
            }
            return HTTPBody(JSONValue.object(parameters).serializedBytes())
        }
    }

    /// Two programs could read two values of a name that is there twice.
    private static func hasDuplicates(_ value: JSONValue) -> Bool {
        switch value {
        case .object(let object):
            !object.duplicateNames.isEmpty || object.members.contains { hasDuplicates($0.value) }
        case .array(let elements): elements.contains(where: hasDuplicates)
        default: false
        }
    }
}
