package import AssentCore

/// The parameters of an OAuth request, from a query or a form (RFC 6749 appendix B), with every bound already checked.
///
/// Its description names the parameters and shows none of their values: among them are codes, tokens and secrets.
package struct OAuthParameters: Sendable, CustomStringConvertible, CustomReflectable {
    /// How many parameters a request may have.
    package static let limit = 64

    /// How many bytes a value may have.
    package static let valueLimit = 8192

    /// All parameters in their order.
    package let form: FormItems

    /// Parameters that were decoded elsewhere.
    ///
    /// - Parameters:
    ///   - form: the parameters.
    ///   - repeatable: those that may be there more than once, besides `resource` (RFC 8707 §2).
    /// - Throws: ``OAuthError`` `invalid_request` for too many, for too long ones, and for one that is there twice (RFC
    ///   6749 §3.1).
    package init(_ form: FormItems, repeatable: Set<String> = []) throws(OAuthError) {
        guard form.items.count <= Self.limit else { throw .invalidRequest("The request has too many parameters.") }
        guard form.items.allSatisfy({ $0.name.utf8.count <= 128 && $0.value.utf8.count <= Self.valueLimit }) else {
            throw .invalidRequest("A parameter of the request is too long.")
        }
        guard form.duplicateNames.allSatisfy({ $0 == "resource" || repeatable.contains($0) }) else {
            var error = OAuthError.invalidRequest("A parameter of the request is there more than once.")
            error.state = form["state"]
            throw error
        }
        self.form = form
    }

    /// Parameters from a query or a form body as they came.
    ///
    /// One of the vendor's SDKs does not encode its values: spaces are taken as they are, and only the first `=` of a
    /// parameter divides it.
    /// - Parameters:
    ///   - bytes: the query or the form.
    ///   - repeatable: as for ``init(_:repeatable:)``.
    /// - Throws: ``OAuthError`` `invalid_request`, also for what is not percent-encoded UTF-8.
    package init(urlEncoded bytes: some Sequence<UInt8>, repeatable: Set<String> = []) throws(OAuthError) {
        let text = bytes.map { $0 == UInt8(ascii: " ") ? UInt8(ascii: "+") : $0 }
        let form: FormItems
        do {
            form = try FormEncoding.parse(text, limits: .init(items: Self.limit))
        } catch {
            throw .invalidRequest("The parameters of the request are not a form that this server reads.")
        }
        try self.init(form, repeatable: repeatable)
    }

    /// All values of a parameter that are not empty, each once.
    package func all(_ name: String) -> [String] {
        form.items.reduce(into: []) { values, item in
            if item.name == name, !item.value.isEmpty, !values.contains(item.value) { values.append(item.value) }
        }
    }

    /// The value of a parameter; `nil` when it is not there or empty (RFC 6749 §3.1: the same).
    package subscript(name: String) -> String? {
        form[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The value of a parameter that must be there.
    package func required(_ name: String) throws(OAuthError) -> String {
        guard let value = self[name] else {
            throw .invalidRequest("Request is missing a required parameter: \(name)")
        }
        return value
    }

    /// The scopes that are asked for, in their order and each once; `nil` when none are.
    ///
    /// - Throws: ``OAuthError`` `invalid_scope` for what is not a list of scopes (RFC 6749 §3.3).
    package func scopes() throws(OAuthError) -> [String]? {
        guard let text = self["scope"] else { return nil }
        var scopes: [String] = []
        for scope in text.split(separator: " ").map(String.init) where !scopes.contains(scope) {
            guard OAuthClient.isScope(scope) else {
                throw OAuthError(.invalidScope, "The requested scope is malformed.")
            }
            scopes.append(scope)
            guard scopes.count <= Self.limit else { throw OAuthError(.invalidScope, "Too many scopes.") }
        }
        return scopes.isEmpty ? nil : scopes
    }

    /// The names of the parameters.
    package var description: String { "OAuthParameters(\(form.items.map(\.name).joined(separator: ", ")))" }

    /// A mirror without children, so that `dump` shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
