/// Why a program that we did not write does not serve.
package struct PeerFailure: Error, CustomStringConvertible {
    /// What is wrong and, where one can say it, what to do.
    package let description: String

    /// A failure with its explanation.
    package init(_ description: String) {
        self.description = description
    }
}
