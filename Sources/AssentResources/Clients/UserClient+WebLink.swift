public import AssentAuthorization
public import AssentTokens

extension UserClient {
    /// Asks for a link that signs a browser in as the user and leads it to a page. Open it at once: it can be used
    /// once, within a minute.
    ///
    /// ```swift
    /// let link = try await assent.userClient.webLink(to: "https://shop.bank.example/orders")
    /// open(link.url)
    /// ```
    ///
    /// The page of the link asks the user first. The browser's session ends with that of the app.
    ///
    /// - Parameter target: one of the pages that the server lists for this app, as it is written there.
    /// - Returns: the link.
    /// - Throws: `ResourceError`: `webLinkDisabled` when the server has no such links for this app; `invalidRequest`
    ///   for a page that is not listed; `userNotAuthenticated`; the transport's.
    public func webLink(to target: String) async throws(ResourceError) -> WebLink {
        do {
            return try await link(target)
        } catch {
            throw ResourceError(error, .user) ?? .unforeseen(error, .user)
        }
    }
}
