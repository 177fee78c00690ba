public import AssentCore
import AssentSigningProtocol

extension SigningContainer {
    /// Begins a transaction of this device's own: the user is shown a text of the app, and signs it. The server keeps
    /// what was signed as evidence; nothing else follows from it.
    ///
    /// Answer it like any other transaction, with ``SigningTransaction/setStatus(_:password:number:reason:)``. Nothing
    /// is signed before.
    ///
    /// - Parameters:
    ///   - message: the text, 1 to 1000 characters that can be shown.
    ///   - label: the key of usage `sign` that is to sign; without one the container's only one.
    ///   - password: the password `session`, if the container has one and it is not remembered.
    /// - Returns: the transaction, whose document has this text.
    /// - Throws: ``SigningError`` with code `invalidArgument` for a text that cannot be shown, or when there is no such
    ///   key; `documentRefused` when the server's document has another text.
    public func record(_ message: String, label: String? = nil, password: Secret? = nil) async throws
        -> SigningTransaction
    {
        try await Documents(parts: device.parts).record(message, label: label, in: self, password: password)
    }
}
