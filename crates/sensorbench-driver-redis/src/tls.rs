//! Encryption as the URL asks for it.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use sensorbench_driver::{Tls, TlsMode};

/// The configuration, or None when connections are not encrypted. The error says what is wrong with which file.
pub fn configuration(tls: &Tls) -> Result<Option<Arc<ClientConfig>>, String> {
    if tls.mode == TlsMode::Off {
        return Ok(None);
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let verifier: Arc<dyn ServerCertVerifier> = match tls.mode {
        TlsMode::Unverified => Arc::new(Unverified(provider)),
        _ => WebPkiServerVerifier::builder_with_provider(Arc::new(roots(tls.ca.as_deref())?), provider)
            .build()
            .map_err(|error| error.to_string())?,
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let configuration = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let private_key = PrivateKeyDer::from_pem_file(key).map_err(|error| at(key, error))?;
            builder.with_client_auth_cert(certificates(certificate)?, private_key).map_err(|error| at(certificate, error))?
        }
    };
    Ok(Some(Arc::new(configuration)))
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let Some(path) = ca else { return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }) };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| at(path, error))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| at(path, error))?;
    if certificates.is_empty() { Err(at(path, "there is no certificate (PEM) in it")) } else { Ok(certificates) }
}

fn at(path: &Path, problem: impl std::fmt::Display) -> String {
    format!("{}: {problem}", path.display())
}

/// Takes every certificate, as `tls=unverified` asks; signatures are checked all the same.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
